"""The table of a visit: what somebody reads first."""


def cell(value):
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def rows(header, lines):
    """A table in markdown."""
    text = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return (
        "\n".join(text + ["| " + " | ".join(cell(value) for value in line) + " |" for line in lines]) + "\n"
    )


def entries(data, part):
    parts = data.get("parts", [])
    return [entry for each in parts if each["part"] == part for entry in each["entries"]]


def section(title, text):
    return f"\n## {title}\n\n{text}" if text else ""


def suspected(fault):
    """The launches that may have caused a fault of which the kernel is not known."""
    names = [each.get("launch", "") for each in fault.get("suspects", []) if isinstance(each, dict)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"one of {', '.join(names[:3])}{more}" if names else None


def alone(fault):
    """What became of the case when it ran again."""
    again = fault.get("again")
    return f"{fault.get('alone', '')}; the same again: {again}" if again else fault.get("alone", "")


def markdown(data):
    """The whole table. Data may be cut or of a visit that goes on: nothing is taken for granted but the
    parts' names."""
    machine = data.get("machine", {})
    gpu = machine.get("gpu")
    where = gpu.get("name") if isinstance(gpu, dict) else gpu
    text = f"# GPU check, {data.get('visit', '')} visit\n\n"
    text += (
        f"Device {data.get('device', '')}, {where or data.get('where') or 'no GPU'}; commit"
        f" {data.get('commit') or 'unknown'}; "
    )
    text += (
        f"{data.get('date', '')}; {data.get('seconds', 0)}"
        f" s{'' if data.get('finished') else ', not finished'}.\n"
    )
    if data.get("device") != "cuda" or data.get("where"):
        text += "\nThis was no GPU: the times below are an emulator's, and say nothing about one.\n"
    for kind in ("missing", "reduced"):
        text += section(kind.capitalize(), "".join(f"- {line}\n" for line in data.get(kind, [])))
    text += section(
        "Parts",
        rows(
            ["part", "state", "seconds", "limit", "passed", "failed", "skipped", "answers"],
            [
                [
                    part["part"],
                    part["state"],
                    part.get("seconds"),
                    part.get("limit"),
                    *(
                        sum(entry["state"] == state for entry in part.get("entries", []))
                        for state in ("passed", "failed", "skipped")
                    ),
                    part.get("answers"),
                ]
                for part in data["parts"]
            ],
        ),
    )
    text += section(
        "Faults",
        (
            rows(
                ["part", "case", "kind", "kernel", "phase", "lines", "alone", "memcheck"],
                [
                    [
                        fault["part"],
                        fault["case"],
                        fault["kind"],
                        fault["kernel"] or suspected(fault),
                        fault["phase"],
                        ", ".join(fault["lines"]),
                        alone(fault),
                        (
                            fault["memcheck"]["summary"]
                            if isinstance(fault["memcheck"], dict)
                            else fault["memcheck"]
                        ),
                    ]
                    for fault in data.get("faults", [])
                    if isinstance(fault, dict)
                ],
            )
            if data.get("faults")
            else ""
        ),
    )
    bad = [
        [part["part"], entry["name"], entry["state"], entry.get("why", "")]
        for part in data["parts"]
        for entry in part.get("entries", [])
        if entry["state"] != "passed"
    ]
    text += section("What failed or was skipped", rows(["part", "case", "state", "why"], bad) if bad else "")
    text += "".join(
        section(part["part"].capitalize(), rows(*part["table"]))
        for part in data["parts"]
        if part.get("table")
    )
    return text
