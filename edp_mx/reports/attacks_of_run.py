"""The part that attacks have in the pages of their run."""

from __future__ import annotations

from typing import List

from edp_mx.attacks.directory import attack_folder
from edp_mx.reports import exposure_page
from edp_mx.reports.attack_page import HEADER, attack_rows, warnings_of
from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.run_head import attacks_on, verdict_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.json_text import read_json


def parts_of_attacks(run: RunDirectory) -> List[Part]:
    """Return the findings of attacks on a run: membership, and the exposure of canaries."""
    tables: List[PartTable] = []
    notes: List[str] = []
    attacks = attacks_on(run, notes)
    texts = [verdict_of(each.results[0]) for each in attacks]
    for each in attacks:
        place = attack_folder(run, each.attack).name
        caption = f"Membership, {each.attack}: {place}/report.html shows more"
        tables.append(PartTable.of_texts(caption, HEADER, attack_rows(each)))
        notes += warnings_of(each.facts)
    exposure = attack_folder(run, "canaries") / "exposure.json"
    if exposure.exists():
        found = read_json(exposure)
        caption = f"Exposure of canaries: {exposure.parent.name}/report.html shows more"
        rows = exposure_page.exposure_rows(found["canaries"])
        tables.append(PartTable.of_texts(caption, exposure_page.HEADER, rows))
        notes += warnings_of(found.get("facts", {}), exposure_page.TRAINED)
    return [Part("Attacks", texts, tables=tables, notes=notes)] if tables or notes else []
