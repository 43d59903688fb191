"""The part that attacks have in the page of their run."""

from __future__ import annotations

from typing import List

from edp_mx.attacks.directory import attack_folder
from edp_mx.errors import UserError
from edp_mx.reports import exposure_page
from edp_mx.reports.attack_page import HEADER, attack_rows, warnings_of
from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.run_head import verdict_of
from edp_mx.runs.attack_records import read_attack
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.json_text import read_json


def parts_of_attacks(run: RunDirectory) -> List[Part]:
    """Return the findings of attacks on a run: membership, and the exposure of canaries."""
    texts: List[str] = []
    tables: List[PartTable] = []
    notes: List[str] = []
    for path in sorted(run.path.glob("attack-*/attack.json")):
        try:
            attack = read_attack(path.parent)
            rows, name = attack_rows(attack), attack.attack
            texts.append(verdict_of(attack.results[0]))
            notes += warnings_of(attack.facts)
        except (UserError, KeyError, TypeError, IndexError) as error:
            notes.append(f"{path.parent.name} cannot be shown: {error}.")
        else:
            caption = f"Membership, {name}: {path.parent.name}/report.html shows more"
            tables.append(PartTable.of_texts(caption, HEADER, rows))
    exposure = attack_folder(run, "canaries") / "exposure.json"
    if exposure.exists():
        found = read_json(exposure)
        caption = f"Exposure of canaries: {exposure.parent.name}/report.html shows more"
        rows = exposure_page.exposure_rows(found["canaries"])
        tables.append(PartTable.of_texts(caption, exposure_page.HEADER, rows))
        notes += warnings_of(found["facts"], exposure_page.TRAINED)
    return [Part("Attacks", texts, tables=tables, notes=notes)] if tables or notes else []
