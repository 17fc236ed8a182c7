"""What the engine spends on calls of its own, by layer, and what it saves.

Sessions are read and played as `policy.py` does. `own_usd` is what summaries, notes and memories
cost on the sessions as they were recorded; `own_share` their part of all spending; `saved_usd` what
the conversation's own calls cost less than if everything had stayed in.

    python benchmarks/own_cost.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--sessions N] [--json]
"""

import json

from policy import NOTHING, RECORDED, Changes, each, parsed, sessions


def main() -> None:
    given = parsed(__doc__.splitlines()[0]).parse_args()
    chosen = sessions(given.files or sorted(RECORDED.rglob("*.jsonl.gz")), given.sessions)
    policies: dict[str, Changes] = {"nothing": NOTHING, "ours": {}}
    found = dict(each(policies, chosen, given.model, given.lifetime))
    ours, own = found["ours"], sum(found["ours"].own_usd.values())
    print(
        json.dumps(
            {
                "sessions": len(chosen),
                "model": given.model,
                "lifetime": given.lifetime,
                "calls": ours.calls,
                "own_calls": ours.own_calls,
                "main_usd": round(ours.usd, 4),
                "own_usd": round(own, 4),
                "own_share": round(own / ours.total_usd, 4) if ours.total_usd else 0.0,
                "saved_usd": round(found["nothing"].usd - ours.usd, 4),
                "by_layer": {k: round(v, 4) for k, v in sorted(ours.own_usd.items())},
            }
        )
    )


if __name__ == "__main__":
    main()
