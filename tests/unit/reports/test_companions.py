"""What is written beside a file that the user named destroys nothing of the user's."""

import pytest
from support.records import record_of
from support.refusals import one_sentence

from edp_mx.dp.accounting.bound import unbounded
from edp_mx.reports.epsilon_curve import plot_curve
from edp_mx.reports.records_page import write_pages

WRITERS = {
    "curve.csv": lambda out: plot_curve(
        [], delta=1e-5, holds=unbounded("of a test"), path=out / "curve.png"
    ),
    "page.md": lambda out: write_pages(out / "page.html", [record_of()], [], []),
}


@pytest.mark.parametrize("name", WRITERS)
def test_another_s_file_stays_and_our_own_is_written_anew(name, tmp_path):
    beside, write = tmp_path / name, WRITERS[name]
    beside.write_text("my,notes\n1,2\n")
    one_sentence(f"{name}, which is written with .* name another file", write, tmp_path)
    assert beside.read_text() == "my,notes\n1,2\n" and list(tmp_path.iterdir()) == [beside]
    beside.unlink()
    write(tmp_path)
    first = beside.read_text()
    write(tmp_path)
    assert beside.read_text() == first and len(list(tmp_path.iterdir())) == 2
