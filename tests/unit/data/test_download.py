"""Fetching against a real server on 127.0.0.1 that fails in every way a real one does."""

import dataclasses
import gzip
import hashlib
import io
import re
import socket
import stat
import tarfile
import threading
import zipfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Dict, List

import pytest
from support.refusals import one_sentence

from edp_mx.data import archives, download
from edp_mx.data.download import CORPORA, fetch
from edp_mx.errors import UserError

FILES = {
    f"{part}/{name}": f"{part} {name}\n".encode() * 50
    for part in ("train", "valid", "test")
    for name in ("seq.in", "seq.out", "label")
}
CSV = {f"KFold_{k}/testset/csv/alarm_{n}.csv": f"{k};{n}\n".encode() for k in (1, 2) for n in "ab"}
DIALOGUES = {
    f"{part}/{name}.json": f'["{part}", "{name}"]'.encode()
    for part in ("train", "dev", "test")
    for name in ("dialogues_001", "dialogues_127", "schema")
}
INSIDE = CORPORA["nlu_eval"].inside


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def manifest_of(files: Dict[str, bytes]) -> str:
    lines = "".join(f"{sha256(files[path])}  {path}\n" for path in sorted(files))
    return sha256(lines.encode())


def zip_of(files: Dict[str, bytes], root: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(root + path, content)
    return buffer.getvalue()


def tar_of(name="", kind=tarfile.REGTYPE, target="", files: Dict[str, bytes] = CSV) -> bytes:
    """An archive of files, and with a name one member more."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if name:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return buffer.getvalue()


class Server:
    """Serves `content`; `script` holds what the next requests of a path get instead."""

    def __init__(self) -> None:
        self.content: Dict[str, bytes] = {}
        self.script: Dict[str, List[str]] = {}
        self.asked: Counter = Counter()
        self.stated = ""  # in place of a body's length
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.lstrip("/")
                outer.asked[path] += 1
                fault = outer.script[path].pop(0) if outer.script.get(path) else ""
                if fault.isdigit() or path not in outer.content:
                    self.send_error(int(fault or 404))
                    return
                body = outer.content[path]
                self.send_response(200)
                self.send_header("Content-Length", outer.stated or str(len(body)))
                self.end_headers()
                if fault == "slow":
                    threading.Event().wait(3)
                self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 500.0)  # a busy machine is no fault
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    threading.Thread(target=running.server.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture(autouse=True)
def small_corpora(monkeypatch):
    """Corpora of a few bytes in the place of the real ones, with checksums of their own."""
    small = {
        "atis": dataclasses.replace(
            CORPORA["atis"],
            checksums={path: sha256(content) for path, content in FILES.items()},
            manifest=manifest_of(FILES),
        ),
        "nlu_eval": dataclasses.replace(CORPORA["nlu_eval"], manifest=manifest_of(CSV)),
        "dstc8": dataclasses.replace(CORPORA["dstc8"], num_files=len(DIALOGUES)),
    }
    monkeypatch.setattr(download, "CORPORA", small)


def contents(folder) -> Dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_refused(tmp_path, match: str, corpus: str = "atis", **arguments) -> None:
    """One sentence, and nothing is left behind."""
    before = contents(tmp_path)
    one_sentence(match, fetch, corpus, out=tmp_path / "out", **arguments)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


@pytest.mark.parametrize("faults", [[], ["500"], ["503", "429"], ["cut"], ["cut", "500"]])
def test_fetches_every_file_once_and_tries_again_after_faults_that_pass(server, tmp_path, faults):
    server.content, server.script = dict(FILES), {"train/label": list(faults)}
    folder = fetch("atis", out=tmp_path / "a" / "atis", source=server.url + "/")
    assert contents(folder) == FILES
    assert server.asked.pop("train/label") == len(faults) + 1
    assert set(server.asked.values()) == {1}
    assert list((tmp_path / "a").iterdir()) == [folder]


@pytest.mark.parametrize(
    ("faults", "reason"),
    [(["500"] * 3, "says 500"), (["404"] * 3, "says 404"), (["cut"] * 3, "connection broke")],
)
def test_gives_up_after_three_tries(server, tmp_path, faults, reason):
    server.content, server.script = dict(FILES), {"valid/seq.in": faults}
    assert_refused(tmp_path, f"valid/seq.in: .*{reason}.*3 times", source=server.url)
    assert server.asked["valid/seq.in"] == 3


def test_a_wrong_checksum_and_a_body_without_end_are_refused(server, tmp_path, monkeypatch):
    server.content = {**FILES, "train/seq.in": b"something else\n"}
    assert_refused(tmp_path, "train/seq.in .* wrong checksum", source=server.url)
    server.content = dict(FILES)
    monkeypatch.setattr(download, "MAX_BYTES", 100)
    assert_refused(tmp_path, "larger than 100 bytes", source=server.url)


@pytest.mark.parametrize("stated", ["many", "-1", "1,000", "٣"])
def test_a_length_that_is_no_number_is_told(server, tmp_path, stated):
    server.content, server.stated = dict(FILES), stated
    if not stated.isascii():
        server.stated = stated.encode().decode("latin-1")
    assert_refused(tmp_path, "bytes large|connection broke", source=server.url)


def test_a_server_that_never_ends_is_left(server, tmp_path, monkeypatch):
    server.content = dict(FILES)
    server.script = {path: ["slow"] * 9 for path in FILES}
    monkeypatch.setattr(download, "LONGEST_SECONDS", 0.5)
    assert_refused(tmp_path, "is not here after 0 s", source=server.url)


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://", "https://a:99999999/", "http://a:b/", "http://[x]/"]
)
def test_an_address_that_is_none_is_told(address, tmp_path):
    assert_refused(tmp_path, "no address of a server", source=address)


def test_an_unreachable_server_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as silent:  # nobody listens there, and nobody else can take the port
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert_refused(tmp_path, "out of reach.*--from", source=url)


@pytest.mark.parametrize("root", ["", "NLU-Evaluation-Data-master/", "x/" + INSIDE, INSIDE])
def test_takes_the_corpus_out_of_an_archive(server, tmp_path, root):
    noise = {"trainset/csv/alarm_a.csv": b"no", "README.md": b"no"}
    server.content = {"master.zip": zip_of({**CSV, **noise}, root), "nlu.tar.gz": tar_of()}
    for name in ("", "/master.zip", "/nlu.tar.gz"):
        folder = fetch("nlu_eval", out=tmp_path / f"out{len(name)}", source=server.url + name)
        assert contents(folder) == CSV


def test_takes_local_archives_and_folders(tmp_path):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "master.zip").write_bytes(zip_of(CSV))
    mirrored = fetch("nlu_eval", out=tmp_path / "out", source=str(tmp_path / "mirror"))
    assert contents(mirrored) == CSV
    assert contents(fetch("nlu_eval", out=tmp_path / "copy", source=str(mirrored))) == CSV
    (tmp_path / "atis.zip").write_bytes(zip_of(FILES, "SlotGated-SLU-master/data/atis/"))
    unpacked = fetch("atis", out=tmp_path / "atis", source=str(tmp_path / "atis.zip"))
    assert contents(unpacked) == FILES


def zip_with_link() -> bytes:
    buffer = io.BytesIO(zip_of(CSV))
    with zipfile.ZipFile(buffer, "a") as archive:
        info = zipfile.ZipInfo("KFold_3")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc")
    return buffer.getvalue()


FIRST = "KFold_1/testset/csv/alarm_a.csv"
OUTSIDE = ["../evil", "KFold_1/testset/csv/../../../../evil", "/tmp/evil", "C:/evil"]
SPECIAL = [
    ("ln", tarfile.SYMTYPE, "/etc/passwd", "'ln' is a link"),
    ("KFold_1/testset", tarfile.SYMTYPE, "/tmp", "'KFold_1/testset' is a link"),
    ("hard", tarfile.LNKTYPE, FIRST, "'hard' is a link"),
    ("dev", tarfile.CHRTYPE, "", "'dev' is a device"),
    ("pipe", tarfile.FIFOTYPE, "", "'pipe' is a device"),
]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        *(("x.zip", zip_of({**CSV, path: b"evil"}), "out of the folder") for path in OUTSIDE),
        *(("x.tgz", tar_of(files={**CSV, path: b""}), "out of the folder") for path in OUTSIDE),
        ("x.zip", zip_of({**CSV, "a\\..\\evil": b"evil"}), "out of the folder"),
        *(("x.tar.gz", tar_of(*member), told) for *member, told in SPECIAL),
        ("x.zip", zip_with_link(), "'KFold_3' is a link"),
        *(("x.zip", torn, "archive") for torn in (zip_of(CSV)[:99], b"not an archive", b"")),
        *(("x.tar.gz", torn, "archive") for torn in (tar_of()[:99], b"not an archive", b"")),
        ("x.zip", zip_of({FIRST: b"0" * 100_000}), "unpacks to more than 9,999 bytes"),
        ("x.tgz", tar_of(files={FIRST: b"0" * 100_000}), "unpacks to more than 9,999 bytes"),
        ("x.zip", zip_of({**CSV, f"root/{FIRST}": b"other"}), "alarm_a.csv twice"),
        ("x.zip", zip_of({**CSV, FIRST.replace("1", "9"): b""}), r"\(5 files\) has a wrong check"),
        ("x.zip", zip_of({"README.md": b"no"}), r"\(0 files\) has a wrong check"),
    ],
    ids=lambda value: "archive" if isinstance(value, bytes) else None,  # which has times in it
)
def test_archives_that_are_refused(name, content, told, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_BYTES", 9_999)
    (tmp_path / name).write_bytes(content)
    assert_refused(tmp_path, told, "nlu_eval", source=str(tmp_path / name))
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_header_of_an_archive_is_not_read_whole(kind, tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, 2 << 30
    with gzip.open(tmp_path / "x.tgz", "wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.write(b"a" * 3_000_000)
    assert_refused(tmp_path, "header of 2,147", "nlu_eval", source=str(tmp_path / "x.tgz"))


def test_an_archive_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    (tmp_path / "x.tgz").write_bytes(tar_of(files={f"{i}.csv": b"" for i in range(9)}))
    assert_refused(tmp_path, "more than 3 files", "nlu_eval", source=str(tmp_path / "x.tgz"))


def test_a_disk_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "atis.zip").write_bytes(zip_of(FILES))
    monkeypatch.setattr(download.os, "replace", full)
    assert_refused(tmp_path, "cannot write atis .*No space", source=str(tmp_path / "atis.zip"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        fetch("atis", out=tmp_path / "file" / "atis", source=str(tmp_path / "atis.zip"))


def test_keeps_a_folder_that_holds_the_corpus_and_refuses_one_with_other_content(server, tmp_path):
    server.content = dict(FILES)
    folder = fetch("atis", out=tmp_path / "out", source=server.url)
    asked = sum(server.asked.values())
    assert fetch("atis", out=folder, source=server.url) == folder
    assert sum(server.asked.values()) == asked
    (folder / "train" / "label").write_bytes(b"mine\n")
    assert_refused(tmp_path, "holds something else", source=server.url)
    (tmp_path / "empty").mkdir()
    assert contents(fetch("atis", out=tmp_path / "empty", source=server.url)) == FILES
    (tmp_path / "file").write_text("mine")
    one_sentence("holds something else", fetch, "atis", out=tmp_path / "file", source=server.url)


def test_refuses_sources_and_names_that_are_not_there(tmp_path):
    assert_refused(tmp_path, "does not exist", source=str(tmp_path / "nowhere"))
    assert_refused(tmp_path, "no public corpus 'weather'", "weather")
    (tmp_path / "text.txt").write_text("not an archive")
    assert_refused(tmp_path, "not an archive", source=str(tmp_path / "text.txt"))
    (tmp_path / "other").mkdir()
    assert_refused(tmp_path, "has no .*seq.in|has no .*label", source=str(tmp_path / "other"))


def test_without_checksums_the_number_of_files_decides(server, tmp_path):
    """DSTC8: the archive of a commit has other versions of the schemas, which are not taken."""
    root = "dstc8-schema-guided-dialogue-e852981/"
    noise = {"sgd_x/data/v1/train/schema.json": b"no", "LICENSE.txt": b"no"}
    archive = CORPORA["dstc8"].archive
    server.content = {archive: zip_of({**DIALOGUES, **noise}, root)}
    folder = fetch("dstc8", out=tmp_path / "dstc8", source=server.url)
    assert contents(folder) == DIALOGUES and not download.CORPORA["dstc8"].manifest
    server.content = {}
    assert fetch("dstc8", out=folder, source=server.url) == folder  # it is there
    assert contents(fetch("dstc8", out=tmp_path / "copy", source=str(folder))) == DIALOGUES
    told = r"\(8 files\) should be 9 files: it is not dstc8"
    (folder / "dev" / "schema.json").unlink()
    assert_refused(tmp_path, told, "dstc8", source=str(folder))
    server.content = {archive: zip_of({**noise, **dict([*DIALOGUES.items()][1:])}, root)}
    assert_refused(tmp_path, told, "dstc8", source=server.url)


def test_the_release_of_dstc8_is_a_commit_and_fits_what_is_wanted():
    dstc8 = CORPORA["dstc8"]
    assert re.fullmatch(r"[0-9a-f]{40}\.zip", dstc8.archive)
    parts = {"train": 127, "dev": 20, "test": 34}
    paths = [f"{part}/schema.json" for part in parts]
    paths += [
        f"{p}/dialogues_{i:03}.json" for p, count in parts.items() for i in range(1, count + 1)
    ]
    assert len(paths) == dstc8.num_files
    assert all(re.fullmatch(dstc8.wanted, path) for path in paths)


@pytest.mark.parametrize("name", [name for name, public in CORPORA.items() if public.checksums])
def test_the_checksum_of_all_files_is_that_of_their_checksums(name):
    public = CORPORA[name]
    lines = [f"{found}  {path}\n" for path, found in sorted(public.checksums.items())]
    assert sha256("".join(lines).encode()) == public.manifest
    assert all(re.fullmatch(public.wanted, path) for path in public.checksums)


CHECKED = sorted(name for name, public in CORPORA.items() if public.manifest)


@pytest.mark.parametrize("name", CHECKED)
def test_the_real_corpora_agree_with_the_checksums(name, tmp_path, monkeypatch, real_corpus):
    monkeypatch.setattr(download, "CORPORA", CORPORA)
    folder = fetch(name, out=tmp_path / name, source=str(real_corpus(name)))
    assert contents(folder) == contents(real_corpus(name))
