"""JSON rows and the Markdown table."""

from . import peers


def rows_of(name, facts, outcome, floor, versions):
    """facts: what else a row says about the workload."""
    base = {"workload": name} | facts
    ours = {"floor_ms": _r(floor), "rounds": outcome.rounds, "disturbed_rounds": outcome.disturbed}
    if outcome.ours:
        ours |= {"ours_ms": _r(outcome.ours.median()), "ours_min_ms": _r(outcome.ours.least()),
                 "ours_over_floor": _r(outcome.ours.median() / floor),
                 "compile_s": _r(outcome.setup["compile_s"])}
    else:
        ours |= {"ours_ms": None, "ours_why": outcome.problems["ours"]}
    if outcome.ours_call:
        ours["ours_call_ms"] = _r(outcome.ours_call.median())
    rows = []
    for peer in peers.PEERS:
        everything = [s for s in outcome.peers + outcome.probed if s.peer == peer]
        subjects = [s for s in outcome.peers if s.peer == peer] or everything
        if not subjects:
            if peer in outcome.problems:
                rows.append(base | {"peer": peer, "version": versions.get(peer.split()[0])} | ours |
                            {"peer_ms": None, "ratio": None, "why": outcome.problems[peer]})
            continue
        best = min(subjects, key=lambda s: s.median())
        row = base | {"peer": peer, "version": versions.get(peer.split()[0])} | ours
        row |= {"peer_ms": _r(best.median()), "peer_min_ms": _r(best.least()),
                "ratio": outcome.ours and _r(best.median() / outcome.ours.median()), "form": best.title,
                "forms_ms": {s.title: _r(s.median()) for s in everything}}
        rows.append(row)
    return rows or [base | {"peer": None, "version": None} | ours | {"peer_ms": None, "ratio": None}]


def _r(value):
    return float(f"{value:.4g}")


def _ms(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _grouped(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["workload"], []).append(row)
    return groups


def _used(rows):
    return [p for p in peers.PEERS if any(r["peer"] == p for r in rows)]


def _peer_cells(rows, used):
    """A cell for each peer, and one for the best."""
    cells, measured = [], []
    for peer in used:
        row = next((r for r in rows if r["peer"] == peer), None)
        if row and row["peer_ms"] is not None and row["ratio"] is None:
            cells.append(_ms(row["peer_ms"]))
        elif row and row["peer_ms"] is not None:
            measured.append(row["ratio"])
            cells.append(f"{_ms(row['peer_ms'])} ({row['ratio']:.2f})")
        else:
            cells.append("not supported" if row and "not supported" in row.get("why", "") else "-")
    if used:
        cells.append(f"**{min(measured):.2f}**" if measured else "-")
    return cells


def _table(heads, lines):
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *lines]])


def markdown(result):
    """Milliseconds, and in brackets how many times slower than ours."""
    rows = result["rows"]
    shapes = [row for row in rows if row.get("group") == "h"]
    kernels = [row for row in rows if "op" in row and row not in shapes]
    steps = [row for row in rows if "op" not in row]
    parts = [table(some) for table, some in [(_steps, steps), (_kernels, kernels), (_shapes, shapes)] if some]
    parts += [_alone(kind, result["ours"]) for kind in ALONE
              if any(row["workload"].startswith(kind) for row in result["ours"])]
    return "\n\n".join(parts)


# What is not a workload by itself: columns of the table, by the first word of the row.
ALONE = {"overhead": [("loop_us", "microseconds a step of a loop"), ("call_us", "a call")],
         "threads": [("one_us", "microseconds a call of one thread"), ("all_us", "of all together"),
                     ("speedup", "ratio"), ("speedup_apart", "ratio of as many processes")],
         "compile": [("cold_s", "seconds, cold"), ("warm_ms", "milliseconds, warm"),
                     ("compiler_runs", "compiler runs")],
         "busy": [("quiet_ms", "ms on a quiet machine"), ("busy_ms", "ms beside so many that spin"),
                  ("slowdown", "ratio"), ("share", "over that of an even share"),
                  ("ratio_quiet", "best peer / ours, quiet"), ("ratio", "beside them")],
         "storage": [("uint8_ms", "ms from uint8"), ("float32_ms", "ms from float32"), ("ratio", "ratio"),
                     ("same_loss", "same loss")],
         "bytes": [("normalised_ms", "ms, images normalised before"), ("uint8_ratio", "from uint8"),
                   ("int8_ratio", "int8"), ("uint4_ratio", "uint4"), ("uint2_ratio", "uint2"),
                   ("uint1_ratio", "uint1"), ("noise", "noise")],
         "clip": [("plain_ms", "ms"), ("clipped_ms", "ms, gradients clipped"), ("ratio", "ratio")]}


def _alone(kind, rows):
    columns = ALONE[kind]
    lines = [[row["workload"].removeprefix(kind + "-"),
              *("-" if row[key] is None else f"{row[key]:.3g}" for key, _ in columns)]
             for row in rows if row["workload"].startswith(kind)]
    return _table([kind, *(title for _, title in columns)], lines)


def _kernels(rows):
    used = _used(rows)
    lines = []
    for name, group in _grouped(rows).items():
        first = group[0]
        speed = f"{first['gflops']:.0f} GFLOP/s" if first.get("gflops") else f"{first['gbs']:.1f} GB/s"
        lines.append([name, f"**{_ms(first['ours_ms'])}**", speed, _ms(first["floor_ms"]),
                      f"{100 / first['ours_over_floor']:.0f} %", *_peer_cells(group, used)])
    heads = ["kernel", "ours", "ours", "floor", "of the roof", *used] + ["best peer / ours"] * bool(used)
    return _table(heads, lines)


def _shapes(rows):
    """`like`: how many times the time of the rows that it should be like. Memory: of our whole process, and
    of a peer's what it needs beside what it had before the row, with the time of that form."""
    used = _used(rows)
    lines = []
    for name, group in _grouped(rows).items():
        first = group[0]
        cells = _peer_cells(group, used) + [_checked(first), _memory(group)]
        needs = _amount(first)
        if first["ours_ms"] is None:
            lines.append([name, first["ours_why"], "-", needs, _ms(first["floor_ms"]), "-", "-", "-", *cells])
            continue
        speed = f"{first['gflops']:.0f} GFLOP/s" if first["gflops"] else f"{first['gbs']:.1f} GB/s"
        like = "-" if first["like_ratio"] is None else f"{first['like_ratio']:.2f}"
        lines.append([name, f"**{_ms(first['ours_ms'])}**", speed, needs, _ms(first["floor_ms"]),
                      f"{100 / first['ours_over_floor']:.0f} %", like, f"{first['compile_s']:.1f}", *cells])
    heads = ["row", "ours", "ours", "needs", "floor", "of the roof", "like", "built in s", *used]
    return _table(heads + ["best peer / ours"] * bool(used) + ["check", "peak MB"], lines)


def _amount(row):
    size = f"{row['bytes'] * 1e-6:.3g} MB"
    return f"{row['flops'] * 1e-9:.3g} GFLOP, {size}" if row["flops"] else size


def _checked(row):
    if "check" not in row:
        return "-"
    off = "no number" if row["difference"] is None else f"{row['difference']:.0e}"
    return f"same ({off})" if row["check"] == "same" else f"**differs** ({off})"


def _memory(group):
    """Of the forms that were the fastest."""
    memory = group[0].get("memory_mb")
    if not memory:
        return "-"
    parts = [f"**{memory['ours']['peak_mb']:.0f}**"] if "ours" in memory else ["-"]
    for row in group:
        of_peer = memory.get(row.get("form"))
        if of_peer:
            parts.append(f"{row['form']} {of_peer['peak_mb'] - of_peer['bare_mb']:.0f}")
    return ", ".join(parts)


def _steps(rows):
    used = _used(rows)
    lines = []
    for name, group in _grouped(rows).items():
        first = group[0]
        lines.append([f"({name}) {first['title']}", str(first["batch"]), f"**{_ms(first['ours_ms'])}**",
                      _ms(first["ours_call_ms"]), _ms(first["floor_ms"]), f"{first['ours_over_floor']:.2f}",
                      *_peer_cells(group, used)])
    return _table(["workload", "batch", "ours", "call", "floor", "ours / floor", *used] +
                  ["best peer / ours"] * bool(used), lines)


def comparison(result):
    """Of two builds: how many times faster the new one is."""
    heads = ["workload", "form", "ms, new", "ms, old", "old / new", "half of the rounds", "old / old",
             "noise", ""]
    return _table(heads, [_compared(row) for row in result["rows"]])


def _compared(row):
    if "why" in row:
        return [row["workload"], row["form"], *["-"] * 6, f"not measured: {row['why']}"]
    return [row["workload"], row["form"], f"{row['new_ms']:.4g}", f"{row['old_ms']:.4g}",
            f"{row['ratio']:.3f}", f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}",
            f"{row['noise_ratio']:.3f}", f"{row['noise']:.3f}",
            "" if row["verdict"] == "same" else f"**{row['verdict']}**"]


def document_of_comparison(result):
    disturbed = sum({r["workload"]: r.get("disturbed_rounds", 0) for r in result["rows"]}.values())
    return "\n".join([*_heading("Two builds", result), "",
                      "Milliseconds and ratios are medians of the rounds; `noise` is what nine of ten "
                      "rounds of old against old stay within. How it is measured: "
                      "[docs/benchmarks.md](../../docs/benchmarks.md#two-builds).", "",
                      comparison(result), "",
                      f"Rounds repeated because others used the machine: {disturbed}."]) + "\n"


def _heading(title, result):
    facts = result["machine"]
    return [f"# {title}, {result['date']}, {result['class']}", "",
            f"{facts['cores']} cores of {facts['processor']} (family {facts['family']}), {facts['isa']}, "
            f"{facts['memory_gb']} GB; {facts['compiler']}. Threads: {result['threads']}.",
            "Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(result["versions"].items())) + "."]


def document(result):
    roofs = result["roofs"]
    text = [*_heading("Benchmarks", result),
            f"Roofs: {roofs['fma_gflops']} GFLOP/s of fused multiply-adds "
            f"({roofs['fma_gflops_one_thread']} on one thread); copies, bytes read and written: " +
            ", ".join(f"{_size(int(s))} {g:.0f}" for s, g in roofs["copy_gbs"].items()) + " GB/s.", "",
            "Milliseconds a step (medians of the rounds); ours by `loop`, `call` by one call a step; in "
            "brackets how many times slower than ours a peer is, in its best form. How it is measured: "
            "[docs/benchmarks.md](../../docs/benchmarks.md).", ""]
    text += [markdown(result), ""]
    if result["rows"]:
        text += ["Forms of the peers, milliseconds:", ""]
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
