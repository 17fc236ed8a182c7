"""The cost of overhead calls by layer, and what they save.

Sessions are played as `policy.py` does. `own_usd` is what summaries, notes and memories cost on the
sessions as they were recorded; `own_share` their part of all spending; `saved_usd` what the
conversation's own calls cost less than if everything had stayed in.

    python benchmarks/own_cost.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--sessions N] [--json]
"""

from harness import make_replay_parser, print_result, recordings
from longhold.insight.replay.policies import select_policies
from longhold.insight.replay.run import ReplayOptions, replay


def main() -> None:
    given = make_replay_parser(__doc__).parse_args()
    with recordings(given.files, given.sessions) as files:
        options = ReplayOptions(model=given.model, lifetime=given.lifetime)
        found = replay(files, select_policies(("send_everything", "ours")), options)
    ours, everything = found.policies["ours"], found.policies["send_everything"]
    main_usd = ours.usd - ours.own_usd
    figures = {
        "sessions": found.sessions,
        "model": given.model,
        "lifetime": given.lifetime,
        "calls": ours.calls,
        "own_calls": ours.own_calls,
        "main_usd": round(main_usd, 4),
        "own_usd": ours.own_usd,
        "own_share": round(ours.own_usd / ours.usd, 4) if ours.usd else 0.0,
        "saved_usd": round(everything.usd - main_usd, 4),
        "by_layer": ours.own_usd_by_layer,
    }
    print_result(figures, given.json)


if __name__ == "__main__":
    main()
