"""JSON rows and the Markdown table."""

from . import peers


def rows_of(name, workload, outcome, floor, versions):
    base = {"workload": name, "title": workload["title"], "batch": workload["batch"]}
    ours = {"ours_ms": _r(outcome.ours.median()), "ours_min_ms": _r(outcome.ours.least()),
            "ours_call_ms": _r(outcome.ours_call.median()), "floor_ms": _r(floor),
            "ours_over_floor": _r(outcome.ours.median() / floor),
            "compile_s": _r(outcome.setup["compile_s"]), "rounds": outcome.rounds,
            "disturbed_rounds": outcome.disturbed}
    rows = []
    for peer in peers.PEERS:
        subjects = [s for s in outcome.peers if s.peer == peer]
        if not subjects:
            if peer in outcome.problems:
                rows.append(base | {"peer": peer, "version": versions.get(peer.split()[0])} | ours |
                            {"peer_ms": None, "ratio": None, "why": outcome.problems[peer]})
            continue
        best = min(subjects, key=lambda s: s.median())
        everything = subjects + [s for s in outcome.probed if s.peer == peer]
        row = base | {"peer": peer, "version": versions.get(peer.split()[0])} | ours
        row |= {"peer_ms": _r(best.median()), "peer_min_ms": _r(best.least()),
                "ratio": _r(best.median() / outcome.ours.median()), "form": best.title,
                "forms_ms": {s.title: _r(s.median()) for s in everything}}
        rows.append(row)
    return rows or [base | {"peer": None, "version": None} | ours | {"peer_ms": None, "ratio": None}]


def _r(value):
    return float(f"{value:.4g}")


def _ms(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def markdown(result):
    """The steps, a line for each workload: milliseconds, and in brackets how many times slower than ours."""
    steps = {}
    for row in result["rows"]:
        steps.setdefault(row["workload"], []).append(row)
    used = [p for p in peers.PEERS if any(r["peer"] == p for rows in steps.values() for r in rows)]
    lines = ["| workload | batch | ours | call | floor | ours / floor | " +
             "".join(f"{peer} | " for peer in used) + ("best peer / ours |" if used else ""),
             "|---|---|---|---|---|---|" + "---|" * (len(used) + bool(used))]
    for name, rows in steps.items():
        first = rows[0]
        cells = [f"({name}) {first['title']}", str(first["batch"]), f"**{_ms(first['ours_ms'])}**",
                 _ms(first["ours_call_ms"]), _ms(first["floor_ms"]), f"{first['ours_over_floor']:.2f}"]
        measured = []
        for peer in used:
            row = next((r for r in rows if r["peer"] == peer), None)
            if row and row["peer_ms"] is not None:
                measured.append(row["ratio"])
                cells.append(f"{_ms(row['peer_ms'])} ({row['ratio']:.2f})")
            else:
                cells.append("not supported" if row and "not supported" in row.get("why", "") else "-")
        if used:
            cells.append(f"**{min(measured):.2f}**" if measured else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def document(result):
    facts, roofs = result["machine"], result["roofs"]
    text = [f"# Benchmarks, {result['date']}, {result['class']}", "",
            f"{facts['cores']} cores of {facts['processor']} (family {facts['family']}), {facts['isa']}, "
            f"{facts['memory_gb']} GB; {facts['compiler']}. Threads: {result['threads']}.",
            "Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(result["versions"].items())) + ".",
            f"Roofs: {roofs['fma_gflops']} GFLOP/s of fused multiply-adds "
            f"({roofs['fma_gflops_one_thread']} on one thread); copies, bytes read and written: " +
            ", ".join(f"{_size(int(s))} {g:.0f}" for s, g in roofs["copy_gbs"].items()) + " GB/s.", "",
            "Milliseconds a step (medians of the rounds); ours by `loop`, `call` by one call a step; in brackets "
            "how many times slower than ours a peer is, in its best form. How it is measured: "
            "[docs/benchmarks.md](../../docs/benchmarks.md).", ""]
    if result["rows"]:
        text += [markdown(result), "", "Forms of the peers, milliseconds:", ""]
        text += _forms(result["rows"])
        disturbed = {r["workload"]: r["disturbed_rounds"] for r in result["rows"]}
        text += ["", f"Rounds repeated because others used the machine: {sum(disturbed.values())}."]
    return "\n".join(text) + "\n"


def _size(size):
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def _forms(rows):
    lines = []
    for row in rows:
        if row.get("forms_ms"):
            forms = ", ".join(f"{title} {_ms(ms)}" for title, ms in row["forms_ms"].items())
            lines.append(f"- ({row['workload']}) {row['peer']}: {forms}")
    why = sorted({f"- {row['peer']}: {row['why']}" for row in rows if row.get("why")})
    return lines + why
