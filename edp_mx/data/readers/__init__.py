"""From files to utterances: one module a format, and the choice among them."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Tuple

from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.json_lines import read_json_lines, write_jsonl
from edp_mx.data.readers.nlu_eval import nlu_eval_files, read_nlu_eval
from edp_mx.data.readers.snips_json import read_snips_json, snips_files
from edp_mx.data.readers.three_files import is_three_files, parallel_files, read_three_files
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike

__all__ = [
    "LAYOUTS",
    "detect_layout",
    "files_of",
    "read_utterances",
    "refuse_repeated_ids",
    "require_own_split",
    "stream_utterances",
    "write_jsonl",
]

Reader = Callable[[Path, Assembler, str], Iterator[Utterance]]
Source = Tuple[Path, str]  # what a reader opens, and how the ids from it begin
LAYOUTS = ("three_files", "json_lines", "snips_json", "nlu_eval")
_READERS: Dict[str, Reader] = {
    "three_files": read_three_files,
    "json_lines": read_json_lines,
    "snips_json": read_snips_json,
    "nlu_eval": read_nlu_eval,
}
_JSON_LINES = (".jsonl", ".jsonl.gz")
# Our name for a part → the names that its folder or file may have.
_PART_NAMES = {
    "train": ("train",),
    "validation": ("valid", "validation", "dev"),
    "test": ("test",),
}


def read_utterances(path: PathLike, layout: str = "auto") -> List[Utterance]:
    """Reads a whole corpus, its own parts one after the other.

    Args:
        path: a file, or a folder in one of the layouts.
        layout: "auto" (told from names), "three_files", "json_lines", "snips_json", "nlu_eval".

    Raises:
        UserError: nothing there, an unknown layout, or a broken file (with file and line).

    Edge cases:
        Ids are unique in what is returned: `<file>/<line>`, relative to `path`; ids that a JSON
        line brings along are kept, and refused where they repeat.
    """
    utterances = [utterance for _, utterance in stream_utterances(path, layout)]
    refuse_repeated_ids(path, utterances)
    return utterances


def stream_utterances(path: PathLike, layout: str = "auto") -> Iterator[Tuple[str, Utterance]]:
    """As `read_utterances`, one by one, each with its part; ids may repeat.

    Yields:
        "train", "validation" or "test", as the corpus was published, and the utterance; "" in
        place of the part where the corpus has none.
    """
    assembler = Assembler()
    layout, sources = _find(Path(path), layout)
    for part, files in sources.items():
        for file, prefix in files:
            for utterance in _READERS[layout](file, assembler, prefix):
                yield part, utterance


def files_of(path: PathLike, layout: str = "auto") -> List[Tuple[str, Path]]:
    """All files that `stream_utterances` reads, in order, each with its part and its name there.

    Raises:
        UserError: as `read_utterances`, as far as no file is opened.
    """
    layout, sources = _find(Path(path), layout)
    return [
        (f"{layout} {part} {prefix} {file.name}", file)
        for part, found in sources.items()
        for source, prefix in found
        for file in (parallel_files(source) if source.is_dir() else [source])
    ]


def require_own_split(path: PathLike, parts: Iterable[str]) -> None:
    """Refuses a corpus without a training and a test part."""
    if not {"train", "test"} <= set(parts):
        raise UserError(
            f"{path} has no split of its own (it needs train, test and, if wanted, valid): "
            "set data.split to paper"
        )


def detect_layout(path: PathLike) -> str:
    """Tells the layout of a file or folder from its names.

    Raises:
        UserError: nothing there, or nothing known.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path} does not exist")
    for layout in LAYOUTS:
        if _sources(path, layout):
            return layout
    raise UserError(
        f"{path} is in no known layout ({', '.join(LAYOUTS)}): expected seq.in/seq.out/label, "
        "*.jsonl, <Intent>/train_<Intent>_full.json, or KFold_*/testset/csv/*.csv"
    )


def _find(path: Path, layout: str) -> Tuple[str, Dict[str, List[Source]]]:
    """The layout by its name, and what to open; a corpus without parts has the one part ""."""
    if layout not in ("auto", *LAYOUTS):
        raise UserError(f"data.layout: {layout!r} is none of auto, {', '.join(LAYOUTS)}")
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if layout == "auto":
        layout = detect_layout(path)
    sources = _sources(path, layout)
    if not sources:
        raise UserError(f"{path} holds no file in the layout {layout}")
    return layout, sources


def _sources(path: Path, layout: str) -> Dict[str, List[Source]]:
    """Part → what its reader opens; empty where `path` is not in this layout."""
    if path.is_file():
        suffixes = {"json_lines": _JSON_LINES, "snips_json": (".json",), "nlu_eval": (".csv",)}
        fits = path.name.endswith(suffixes.get(layout, ()))
        return {"": [(path, path.name)]} if fits else {}
    if layout == "three_files" and is_three_files(path):
        return {"": [(path, "")]}
    if layout == "nlu_eval":
        return _relative(path, {"": nlu_eval_files(path)})
    if layout == "snips_json":
        return _relative(path, snips_files(path))
    return _part_sources(path, layout)


def _part_sources(folder: Path, layout: str) -> Dict[str, List[Source]]:
    """`train/seq.in …` or `train.jsonl …`; for JSON lines else all such files as one part."""
    found: Dict[str, List[Source]] = {}
    for part, names in _PART_NAMES.items():
        for name in names:
            if layout == "three_files":
                present = [folder / name] if is_three_files(folder / name) else []
            else:
                present = [p for p in (folder / f"{name}{s}" for s in _JSON_LINES) if p.is_file()]
            if present and part not in found:
                found[part] = [(present[0], name)]
    if found or layout == "three_files":
        return found
    return _relative(folder, {"": sorted(p for s in _JSON_LINES for p in folder.glob(f"*{s}"))})


def _relative(folder: Path, files: Dict[str, List[Path]]) -> Dict[str, List[Source]]:
    """Ids begin with a file's path below the corpus' folder; parts without files are left out."""
    return {
        part: [(path, path.relative_to(folder).as_posix()) for path in paths]
        for part, paths in files.items()
        if paths
    }


def refuse_repeated_ids(path: PathLike, utterances: Iterable[Utterance]) -> None:
    """Refuses an id that occurs twice."""
    seen = set()
    for utterance in utterances:
        if utterance.id in seen:
            raise UserError(f"{path}: the id {utterance.id!r} occurs twice; ids must be unique")
        seen.add(utterance.id)
