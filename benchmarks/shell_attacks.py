"""The read-only check against the real shell: commands judged harmless are executed.

Commands are made up from a seed (`attacks/commands.py`) and judged as the gate judges them where
there are no rules. Each one that is allowed without asking runs in a tree of canaries (`attacks/world.py`),
in the environment that such commands have plus secrets that must not be printed. An attack has
succeeded if any file inside or outside changed, or output holds a secret. Where the system lets
us, the whole run also has its own mounts, read-only but for the tree, and no network.

`judged_free` of the `judged` commands were free, and `attacks` is how many were executed: all of
them. `hung` were ended after a while.

    python benchmarks/shell_attacks.py [--json] [--attacks N] [--seed N] [--shell PATH]
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attacks.commands import make_command
from attacks.world import SECRET, World
from harness import make_parser, print_result
from longhold.agent.permissions import decide, examine, parse_rules
from longhold.agent.tools.bash import BASH, BashInput, variables_of
from longhold.agent.tools.shells import UNATTENDED, shell_arguments

ATTACKS = 5_200
PROCESSES = 2
PATIENCE_SECONDS = 4.0
"""After this a command is ended: one that waits does nothing else."""
WALL = (
    'mount --bind "$1" "$1" && mount -o remount,ro,bind / && '
    'cd "$1" && base=$1 && shift && exec "$@"'
)


def execute(world: World, command: str, directory: Path, shell: str) -> tuple[bytes, bool]:
    """Run a command as the shell tool would; return its output and whether it had to be ended."""
    own = world.variables()
    secrets = {name: value for name, value in own.items() if value == SECRET}
    arguments = shell_arguments(None) if not shell else (shell, "-c", 'eval "$(cat)"')
    with subprocess.Popen(
        arguments,
        cwd=directory,
        env={
            **variables_of(BashInput(command=command), own),
            **secrets,
            **UNATTENDED,
            "PWD": str(directory),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(command.encode(), timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0], True
    return output, False


def is_free(world: World, command: str, directory: Path) -> bool:
    places = world.places(directory)
    call = examine(BASH, {"command": command}, places)
    return decide(call, parse_rules(), "ask", places).outcome == "allow"


def attack(base: Path, seed: int, attacks: int, shell: str) -> dict[str, object]:
    """Make up and judge commands until enough were executed."""
    rng = random.Random(seed)
    world = World(base / "world-0")
    world.build()
    os.environ["HOME"] = str(world.home)
    before = world.snapshot()
    judged, done, hung = Counter[str](), Counter[str](), 0
    succeeded: list[str] = []
    while done.total() < attacks:
        family, command = make_command(rng)
        is_rooted = family != "git" and rng.random() < 0.9
        directory = world.root if is_rooted else rng.choice(world.directories)
        if is_rooted is False and rng.random() < 0.3:
            command, directory = (
                f"cd {os.path.relpath(directory, world.root)} && {command}",
                world.root,
            )
        judged[family] += 1
        if "\0" in command or not is_free(world, command, directory):
            continue
        output, was_hung = execute(world, command, directory, shell)
        done[family] += 1
        hung += was_hung
        after = world.snapshot()
        if after != before or SECRET.encode() in output:
            changed = sorted(path for path, _ in set(after.items()) ^ set(before.items()))
            what = changed[:2] or [output[:120].decode(errors="replace")]
            succeeded.append(f"in {directory.relative_to(base)}: {command!r} -> {what}")
            world = World(base / f"world-{len(succeeded)}")
            world.build()
            os.environ["HOME"] = str(world.home)
            before = world.snapshot()
    return {"judged": judged, "done": done, "hung": hung, "succeeded": succeeded}


def start(base: Path, arguments: list[str]) -> "subprocess.Popen[bytes]":
    """Start a worker, behind a wall of namespaces if there can be one."""
    worker = [sys.executable, __file__, "--worker", str(base), *arguments]
    unshare = ["unshare", "--mount", "--net", *(["--map-root-user"] if os.getuid() else [])]
    walled = [*unshare, "sh", "-c", WALL, "sh", str(base)]
    can_wall = (
        shutil.which("unshare")
        and not subprocess.run([*walled, "true"], capture_output=True).returncode
    )
    command = [*walled, *worker] if can_wall else worker
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "WALLED": str(bool(can_wall))}
    )


def run(options: argparse.Namespace) -> dict[str, object]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        workers = []
        for number in range(PROCESSES):
            base = Path(place).resolve() / str(number)
            base.mkdir()
            share = -(-options.attacks // PROCESSES)
            arguments = ["--seed", str(options.seed * PROCESSES + number), "--attacks", str(share)]
            workers.append(start(base, [*arguments, "--shell", options.shell]))
        results = [json.loads(worker.communicate()[0]) for worker in workers]
    judged, done = Counter[str](), Counter[str]()
    for result in results:
        judged.update(result["judged"])
        done.update(result["done"])
    succeeded = [line for result in results for line in result["succeeded"]]
    return {
        "attacks": done.total(),
        "succeeded": len(succeeded),
        "judged": judged.total(),
        "judged_free": done.total(),
        "hung": sum(result["hung"] for result in results),
        "walled": results[0]["walled"],
        "seconds": round(time.monotonic() - began, 1),
        "families": {name: [judged[name], done[name]] for name in judged},
        "through": succeeded,
    }


def main() -> None:
    parser = make_parser(__doc__, attacks=ATTACKS, seed=1)
    parser.add_argument("--shell", default="", help="another shell than the one of the tool")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        result = attack(options.worker, options.seed, options.attacks, options.shell)
        print(json.dumps({**result, "walled": os.environ.get("WALLED") == "True"}))
        return
    result = run(options)
    print_result(result, options.json)
    sys.exit(1 if result["succeeded"] else 0)


if __name__ == "__main__":
    main()
