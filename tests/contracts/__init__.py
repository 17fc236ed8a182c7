"""Contract suites for Longhold's seams. They come with the package, for your implementation:

    pytest -p longhold.contracts --pyargs longhold.contracts --model echo/1 --summariser short

An option runs the suite of its kind on a plug-in that is installed. Without any option, the suites
check Longhold's own parts.
"""

from typing import Any

KINDS = ("model", "store", "tool", "transcript", "stage", "summariser", "memory", "policy")
"""One option and one suite each."""


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("contracts", "an implementation of yours for a contract suite")
    group.addoption("--model", default="", help="the name of a model, such as echo/1")
    group.addoption("--store", default="", help="the address of a store")
    group.addoption("--tool", default="", help="the name of an installed plug-in's tool")
    group.addoption("--transcript", default="", help="FORMAT=FILE")
    for kind in KINDS[4:]:
        group.addoption(f"--{kind}", default="", help=f"the name of an installed {kind}")
