"""The pages in a real browser: any width, light and dark, sorted by a click, without a network."""

import json
from itertools import product

import numpy as np
import pytest
from support.browser import CHROMIUM, Browser
from support.commands import ROOT, edp_mx
from support.layout import FAULTS, STICKY
from support.made_ledgers import plan_with, write_plan
from support.membership import made_scores
from support.records import changed, kept, record_of
from support.serving import Model, serving

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import threshold_attacks
from edp_mx.data.utterance import Utterance
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.reports.attack_page import write_report
from edp_mx.reports.headlines import Bar, Headline
from edp_mx.reports.run_page import write_run_page
from edp_mx.reports.statement import write_statement
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.tasks.intent_slot.task import Understanding

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
WIDTHS = (390, 768, 1280, 1600)
SAID = "wake me at nine tomorrow"
NAMES = ("results", "attack", "run", "statement")
EACH_PAGE = pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Those of results, of an attack on a run with a long name, of the run, and its statement."""
    folder = tmp_path_factory.mktemp("pages")
    curve = {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.5], "validation_ser": [0.9, 0.5, 0.4],
             "noise_multiplier": [1.0, 0.5, 0.25], "clipped_fraction": [1.0, 0.9, 0.8]}  # fmt: skip
    edp = {"privacy.micro_batches_per_worker": 8, "privacy.noise_multiplier": 1e-4}
    records = [
        changed(record_of(family="clc", ser=ser, mechanism=mechanism, **more), by_epoch=curve)
        for ser, mechanism, more in (
            (0.5, "dp_sgd", {}),
            (0.06, "none", {}),
            (0.07, "edp_sgd", edp),
        )
    ]
    results = folder / "report.html"
    edp_mx("experiments.report", kept(folder / "records", records), "--out", results,
           "--performance", ROOT / "results" / "performance.json")  # fmt: skip
    run = RunDirectory(folder / f"run_{'long_' * 20}")
    scores = made_scores(np.random.default_rng(3), 60, gap=1.0)
    facts = {"sha256": "a" * 64}
    write_outcome(run, "threshold", threshold_attacks(scores), scores, facts=facts)
    page = page_of_a_finished(run)
    attack = write_report(run.path / "attack-threshold")
    run.weights.touch()
    run.write("vocabulary", {})
    return [results, attack, page, write_statement(run.path)[0]]


def page_of_a_finished(run):
    """What stands at the end of a run, beside the attacks that it has."""
    plan = plan_with()
    (run.path / "config.yaml").write_text(f"name: {'long_' * 20}\ntraining: {{epochs: 4}}\n")
    write_plan(run.ledger, plan)
    run.write("privacy", guarantee(plan).to_dict())
    scores = {"ser": 0.1234, "intent_accuracy": 0.5, "slot_f1": 0.75}
    run.write("results", {"test": scores, "baseline": {**scores, "intent": "long_" * 20}})
    row = {"loss": 1.5, "ser": 40.0, "intent_accuracy": 71.0, "slot_f1": 60.0, "seconds": 20.0,
           "epsilon_as_published": 3.0, "epsilon_holds": 2.0}  # fmt: skip
    rows = (json.dumps({"epoch": epoch, **row}) for epoch in (1, 2))
    run.metrics.write_text("\n".join(rows) + "\n")
    write_run_page(run)
    return run.path / "report.html"


@EACH_PAGE
def test_a_page_fits_any_width_and_needs_no_network(browser, pages, place):
    for width in WIDTHS:
        browser.open(pages[place], width=width)
        wide, seen, whole = browser.run(
            "(page => [page.scrollWidth, page.clientWidth, innerWidth])(document.documentElement)"
        )
        assert wide <= seen <= whole == width
        asked = [event["params"]["request"]["url"] for event in browser.events
                 if event.get("method") == "Network.requestWillBeSent"]  # fmt: skip
        assert asked == [pages[place].as_uri()]
        assert not any(event.get("method") == "Runtime.exceptionThrown" for event in browser.events)


@EACH_PAGE
def test_no_text_is_cut_covered_or_pale(browser, pages, place):
    for width, scheme in product(WIDTHS, ("light", "dark")):
        browser.open(pages[place], width=width, scheme=scheme)
        assert browser.run(FAULTS) == [], (width, scheme)
        assert browser.run("document.querySelectorAll('.head .value').length") == 3
    browser.open(pages[place], width=680, scheme="dark", media="print")
    assert browser.run(FAULTS) == []


def test_faults_are_found(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<p style='color: #888'>pale</p><p style='width: 9999px'>wide</p><div style='overflow-x: "
        "auto'>scrolls</div><section style='width: 9px'>cut</section><svg width=90><text x=2 y=20>"
        "one</text><text x=9 y=20>other</text><text x=80 y=20>beyond</text></svg>"
    )
    browser.open(page, width=390)
    found = {(what, text) for what, text, _ in browser.run(FAULTS)}
    assert found == {("too wide", ""), ("pale", "pale"), ("cut", "cut"), ("on other text", "one"),
                     ("cut", "beyond")}  # fmt: skip


@pytest.mark.parametrize("place", [0, 1])
def test_the_header_and_the_first_column_stay_where_a_table_scrolls(browser, pages, place):
    browser.open(pages[place], width=390, height=200)
    assert browser.run(STICKY) == [True, 0, 0, True]


@EACH_PAGE
def test_every_picture_has_words_and_is_no_wider_than_the_page(browser, pages, place):
    browser.open(pages[place], width=390)
    pictures = browser.run(
        "[...document.querySelectorAll('svg, img')].map(each => [each.getAttribute('role'), "
        "each.getAttribute('aria-label'), each.getBoundingClientRect().right])"
    )
    assert len(pictures) >= 4 or NAMES[place] == "statement"
    for role, words, right in pictures:
        assert role == "img" and len(words) > 5 and right <= 390
        assert ":  " not in words
    names = [words for _, words, _ in pictures if words != "legend"]
    assert len(set(names)) == len(names)
    smallest = browser.run(
        "Math.min(...[...document.querySelectorAll('svg text')].map(each => "
        "each.getBoundingClientRect().height).filter(height => height))"
    )
    assert smallest is None or smallest > 8  # pixels, of a line


def test_dark_and_light_have_their_colours(browser, pages):
    script = """(() => { const of = (each, name) => getComputedStyle(each)[name];
    return [of(document.body, "backgroundColor"), of(document.body, "color"),
      of(document.querySelector("svg text"), "fill"), of(document.querySelector("td"), "color")];
    })()"""
    found = {}
    for scheme in ("light", "dark"):
        browser.open(pages[0], width=1280, scheme=scheme)
        found[scheme] = [brightness(colour) for colour in browser.run(script)]
    (light_ground, *light_ink), (dark_ground, *dark_ink) = found.values()
    assert light_ground > 240 and max(light_ink) < 80
    assert dark_ground < 40 and min(dark_ink) > 200


def test_a_click_on_a_column_sorts_by_it(browser, pages):
    browser.open(pages[0], width=390)
    number = browser.run("[...document.querySelectorAll('table')].findIndex("
                         "each => each.caption.textContent == 'Every run')")  # fmt: skip
    script = (f"[...document.querySelectorAll('table')[{number}].tBodies[0].rows]"
              ".map(row => row.cells[2].textContent)")  # fmt: skip
    browser.run(f"document.querySelectorAll('table')[{number}].id = 'runs'")
    assert browser.run(script) != sorted(browser.run(script), key=float)
    browser.click("#runs th:nth-child(3) button")
    assert browser.run(script) == ["6.00", "7.00", "50.00"]
    browser.click("#runs th:nth-child(3) button")
    assert browser.run(script) == ["50.00", "7.00", "6.00"]
    said = browser.run("document.querySelector('#runs th:nth-child(3)').getAttribute('aria-sort')")
    assert said == "descending"


class Understander(Model):
    """A model that finds a slot at the end of all that is said."""

    def __call__(self, utterances, **heard):
        return list(map(self.understand, utterances))

    @staticmethod
    def understand(tokens):
        slots = (*["O"] * (len(tokens) - 2), "B-time", "I-time")
        return Understanding(Utterance(tuple(tokens), slots, "wake"), 0.973, (0.5,))


def ask(browser, text):
    """What the server's page shows for a text, once it has answered."""
    return browser.run(
        f"""(async () => {{ const answer = document.getElementById("answer");
        const seen = new Promise(done =>
          new MutationObserver(done).observe(answer, {{childList: true}}));
        document.getElementById("text").value = {json.dumps(text)};
        document.querySelector("form").requestSubmit();
        await seen; return answer.innerText; }})()"""
    )


def test_the_server_s_page_marks_slots_and_an_empty_question_clears_the_answer(browser):
    head = [Headline("How good", "9 %", "SER", [Bar("this run", "9 %", 0.09, True)], ["So so."])]
    with serving(Understander(), head=head) as running:
        for width, scheme in product((390, 1280), ("light", "dark")):
            browser.open(f"http://127.0.0.1:{running.port}/", width=width, scheme=scheme)
            said = ask(browser, SAID)
            assert "wake" in said and "97 %" in said and "confidence" in said
            marked = browser.run("[...document.querySelectorAll('mark')].map(m => m.textContent)")
            assert marked == ["nine tomorrow time 50 %"]
            assert browser.run(FAULTS) == []
        assert browser.run("document.querySelectorAll('thead th[scope=col]').length") == 4
        assert browser.run("document.querySelector('.head .value').textContent") == "9 % SER"
        assert ask(browser, " ") == ""


def brightness(colour):
    """The mean of the red, green and blue of a computed colour."""
    return np.mean([float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]])
