# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: it draws the report, handles mouse and keyboard, executes nothing from a job's strings, and requests nothing.
$DDPDOCTOR is the tool; screenshots go to $DDPDOCTOR_SCREENSHOTS, by default build/screenshots. With DDPDOCTOR_DOCS_PICTURES=1 the pictures
of docs/ are updated, too."""
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import browser  # noqa: E402

TOOL = os.environ.get("DDPDOCTOR", str(ROOT / "build/dev/ddpdoctor"))
PICTURES = Path(os.environ.get("DDPDOCTOR_SCREENSHOTS", ROOT / "build/screenshots"))
IN_DOCS = {"small": "report-page.png", "large-pictures": "report-page-1024.png", "dark": "report-page-dark.png", "phone": "report-page-phone.png"}
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>\"'`${window.pwned=1}"

pytestmark = pytest.mark.skipif(browser.find_chromium() is None, reason="no Chromium is installed")


def frame(function, line, file="/srv/train.py"):
    return {"language": "python", "function": function, "file": file, "line": line}


def job(ranks, hostile=""):
    """Rank 2 is in a barrier that only it calls; the others are in all_reduce."""
    wait = frame("all_reduce", 3000, "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py")
    barrier = frame("barrier", 5000, "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py")
    processes, calls = [], []
    for rank in range(ranks):
        guilty = rank == 2
        frames = [barrier, frame("evaluate" + hostile, 61), frame("main", 97)] if guilty else [wait, frame("step", 88), frame("main", 104)]
        threads = [{"tid": 1000 + rank, "name": "python" + hostile, "state": "S", "run_count": 5, "frames": frames}]
        threads += [{"tid": 100000 + 10 * rank + i, "name": f"pt_worker_{i}", "state": "S", "run_count": 1, "frames": [{"language": "native", "function": "epoll_wait"}]}
                    for i in range(4)]
        processes.append({"pid": 1000 + rank, "ppid": 99, "rank": rank, "role": "rank", "host": f"node{rank // 8}", "state": "S",
                          "command": ["python", "train.py" + hostile], "threads": threads})
        for number in range(1, 21):
            operation = "barrier" if guilty and number == 20 else "all_reduce"
            calls.append({"rank": rank, "group": "0", "sequence": number, "operation": operation, "count": 1 if operation == "barrier" else 1024, "dtype": "float32",
                          "state": "started" if number == 20 else "completed", "time": 100 + number + rank * 1e-4,
                          "call_site": {"file": "/srv/train.py", "line": 61 if operation == "barrier" else 88, "function": "evaluate" if operation == "barrier" else "step"}})
    looks = [{"time": 200.0, "processes": processes}, {"time": 205.0, "processes": processes}]
    return {"schema": "ddpdoctor.capture/1", "job": {"world_size": ranks, "command": ["torchrun", "train.py" + hostile]},
            "groups": [{"id": "0", "name": "default_pg", "backend": "gloo", "ranks": list(range(ranks))}], "observations": looks, "collectives": calls,
            "facts": [{"kind": "value", "rank": rank, "pid": 1000 + rank, "role": "decision", "file": "/srv/train.py", "line": 96, "function": "main",
                       "at": 97 if rank == 2 else 104, "expression": "rank == 2", "value": str(rank == 2), "state": "known"} for rank in range(ranks)],
            "sources": {"/srv/train.py": {"60": "def evaluate(model):", "61": "    dist.barrier()" + hostile, "87": "def step(batch):", "88": "    loss.backward()",
                                          "96": "        if rank == 2:", "97": "            evaluate(model)", "104": "        step(batch)"}}}


def absent_job():
    """Rank 2 stays in a function of its own after 19 calls."""
    made = job(4)
    made["collectives"] = [call for call in made["collectives"] if call["rank"] != 2 or call["sequence"] < 20]
    for look in made["observations"]:
        look["processes"][2]["threads"][0]["frames"] = [frame("evaluate", 61), frame("main", 97)]
    return made


def parallel_job(ranks=256, tensor=4, data=16):
    """Pipelines of 4; rank 37 reads a file, the others wait below functions of 16 names; a group for each line of ranks through the mesh."""
    lines = {}
    for rank in range(ranks):
        t, d, p = rank % tensor, rank // tensor % data, rank // (tensor * data)
        for name in (f"tp_{d}_{p}", f"dp_{t}_{p}", f"pp_{t}_{d}"):
            lines.setdefault(name, []).append(rank)
    processes, calls = [], []
    for rank in range(ranks):
        frames = [frame("read", 12)] if rank == 37 else [frame("all_reduce", 3000, "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py"),
                                                         frame(f"layer_{rank % 16}", 30 + rank % 16)]
        processes.append({"pid": 1000 + rank, "rank": rank, "role": "rank", "host": f"node{rank // 8}", "state": "S",
                          "threads": [{"tid": 1000 + rank, "state": "S", "run_count": 5, "frames": [*frames, frame("main", 104)]}]})
    lines["world"] = list(range(ranks))
    for name, members in lines.items():
        for rank in members:
            calls += [{"rank": rank, "group": name, "sequence": number, "operation": "all_reduce", "count": 8, "dtype": "float32",
                       "state": "started" if number == 2 else "completed"} for number in ((1, 2) if name == "world" and rank != 37 else (1,))]
    looks = [{"time": 200.0, "processes": processes}, {"time": 230.0, "processes": processes}]
    return {"schema": "ddpdoctor.capture/1", "job": {"world_size": ranks}, "observations": looks, "collectives": calls,
            "groups": [{"id": name, "name": name, "backend": "nccl", "ranks": members} for name, members in lines.items()]}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name → path of the page that the tool wrote."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, capture in {"small": job(4), "middle": job(64), "absent": absent_job(), "hostile": job(4, HOSTILE), "large": job(1024), "mesh": parallel_job()}.items():
        (folder / f"{name}.json").write_text(json.dumps(capture))
        made[name] = folder / f"{name}.html"
        done = subprocess.run([TOOL, "report", folder / f"{name}.json", "-o", made[name], "-o", folder / f"{name}.report.json"], capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
    return made


@pytest.fixture
def page():
    with browser.Browser() as opened:
        yield opened


def picture(page, name, sections=None):
    """A screenshot of the window, or of the page from the first of these sections to the last."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    about = {}
    if sections:
        top, bottom, width = page.js(f"(() => {{ const boxes = {json.dumps(sections)}.map((one) => document.querySelector(one).getBoundingClientRect());"
                                     " return [boxes[0].top + scrollY, boxes[boxes.length - 1].bottom + scrollY, innerWidth]; })()")
        about = {"captureBeyondViewport": True, "clip": {"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1}}
    data = base64.b64decode(page.call("Page.captureScreenshot", format="png", **about)["data"])
    (PICTURES / f"{name}.png").write_bytes(data)
    if os.environ.get("DDPDOCTOR_DOCS_PICTURES") and name in IN_DOCS:
        (ROOT / "docs" / IN_DOCS[name]).write_bytes(data)
    return len(data)


def test_the_verdict_stands_first_and_nothing_is_asked_of_the_network(page, pages):
    page.open(pages["small"])
    assert "rank 2" in page.js("document.querySelector('#findings h3').textContent")
    assert page.js("document.querySelector('h1').textContent.includes('rank 2')") is False, "the headline is said once"
    assert page.js("document.querySelector('#findings .code .hit').textContent").endswith("dist.barrier()")
    assert page.problems == []
    assert page.requests == [f"file://{pages['small']}"]
    assert picture(page, "small") > 1000


def test_lanes_mark_where_the_ranks_part(page, pages):
    page.open(pages["small"])
    assert page.js("document.querySelectorAll('svg.lanes g.call').length") == 4 * 8, "the newest calls are shown first"
    page.click("#lanes button.all")
    assert page.js("document.querySelectorAll('svg.lanes g.call').length") == 80
    assert page.js("[...document.querySelectorAll('svg.lanes g.diverges title')].map((one) => one.textContent).filter((text) => text.includes('barrier #20')).length") == 1


def test_a_click_opens_a_process_and_another_closes_it(page, pages):
    page.open(pages["small"])
    before = page.js("document.querySelectorAll('#processes tbody tr').length")
    page.click("#processes tr.row")
    assert page.js("document.querySelectorAll('#processes tbody tr').length") == before + 1
    page.click("#processes tr.row")
    assert page.js("document.querySelectorAll('#processes tbody tr').length") == before


def test_the_stack_tree_folds(page, pages):
    page.open(pages["small"])
    opened = page.js("document.querySelectorAll('.tree details[open]').length")
    assert opened > 1
    page.click("#fold")
    assert page.js("document.querySelectorAll('.tree details[open]').length") == 0


def test_keys_reach_sections_search_and_processes(page, pages):
    page.open(pages["small"])
    page.press("6")
    assert page.js("document.activeElement.id") == "processes"
    page.press("/")
    assert page.js("document.activeElement.id") == "search"
    page.type("rank 2")
    assert page.js("[...document.querySelectorAll('#processes tr.row')].filter((row) => !row.hidden).length") == 1
    page.press("Escape")
    page.js("[...document.querySelectorAll('#processes tr.row')].find((row) => !row.hidden).focus()")
    page.press("Enter")
    assert page.js("document.querySelectorAll('#processes tr.open').length") == 1


def test_what_a_job_says_is_never_run(page, pages):
    page.open(pages["hostile"])
    page.click("#processes tr.row")
    assert page.js("window.pwned === undefined")
    assert page.js("document.querySelectorAll('img').length") == 0
    assert "<img src=x" in page.js("document.body.textContent")
    assert page.problems == []
    assert page.requests == [f"file://{pages['hostile']}"]


def test_a_thousand_ranks_fit_and_draw(page, pages):
    assert pages["large"].stat().st_size <= 500_000
    page.open(pages["large"])
    assert page.problems == []
    assert page.js("document.querySelectorAll('#processes tr.row').length") == 1, "rows that are not shown are not made"
    assert "1023 processes that do the same" in page.js("document.querySelector('#processes tr.alike').textContent")
    assert page.js("document.querySelector('#processes .bar').textContent") == "1024 of 1024"
    assert page.js("document.querySelectorAll('svg.lanes g.diverges').length") == 2, "1,023 ranks are one lane, rank 2 is the other"
    print("drawn after", page.js("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"), "ms")
    assert picture(page, "large") > 1000
    assert picture(page, "large-pictures", ["#waits", "#stacks", "#lanes"]) > 1000


def test_many_groups_and_places_show_the_outlier_and_fold_the_rest(page, pages):
    page.open(pages["mesh"])
    assert page.problems == []
    assert "rank 37" in page.js("document.querySelector('#findings h3').textContent")
    assert "32 hosts" in page.js("document.getElementById('head').textContent")
    assert "rank 37" in page.js("document.querySelector('.tree details details summary').textContent"), "the first branch is the culprit's"
    groups = "document.querySelectorAll('#groups .card').length"
    assert page.js(groups) == 1, "only in the world do ranks differ"
    assert page.js("document.querySelector('#groups > details > summary').textContent") == "144 groups agree"
    page.click("#groups > details > summary")
    page.js("new Promise((done) => setTimeout(done, 100))")
    assert page.js(groups) == 1 + 12
    firsts = page.js("[...document.querySelectorAll('#groups details .card h3')].slice(0, 3).map((one) => one.firstChild.textContent)")
    assert sorted(firsts) == ["dp_1_0", "pp_1_9", "tp_9_0"], "the groups of the culprit come first"
    assert page.js("[...document.querySelectorAll('#groups details .card h3')].some((one) => one.textContent.includes('step 4'))"), "strided sets are said as such"


def test_processes_that_do_the_same_are_one_line_until_asked_for(page, pages):
    page.open(pages["mesh"])
    seen = "[...document.querySelectorAll('#processes tbody tr')].filter((row) => !row.hidden)"
    assert page.js(f"{seen}.length") == 1 + 16
    assert page.js(f"{seen}[0].firstChild.textContent") == "37"
    page.click("#processes tr.alike")
    assert page.js(f"{seen}.length") == 1 + 16 + 15, "rank 37's 15 fellows of layer_5 are the fewest"
    page.press("/")
    page.type("rank 36")
    assert page.js(f"{seen}.map((row) => row.firstChild.textContent).join()") == "36"


def test_the_graph_of_waiting_is_two_boxes_at_every_size(page, pages):
    for name, others in (("small", "ranks 0-1,3"), ("middle", "ranks 0-1,3-63"), ("large", "ranks 0-1,3-1023")):
        page.open(pages[name])
        assert page.js("[...document.querySelectorAll('#waits svg g.box text:not(.why)')].map((one) => one.textContent)") == [others, "rank 2"]
        assert page.js("document.querySelector('#waits svg g.culprit text').textContent") == "rank 2"
        assert page.js("[...document.querySelectorAll('#waits svg g.arrow.cycle text')].map((one) => one.textContent).sort()") == [
            "all_reduce #20 of default_pg", "barrier #20 of default_pg"]
    page.open(pages["mesh"])
    fits = "[...document.querySelectorAll('#waits svg g.box')].every((box) => box.querySelector('text').getComputedTextLength() <= box.querySelector('rect').width.baseVal.value - 10)"
    assert page.js("document.querySelectorAll('#waits svg g.box').length") >= 2
    assert page.js(fits)


def test_bars_carry_names_colours_and_how_long_they_have_lasted(page, pages):
    for name in ("small", "middle", "large"):
        page.open(pages[name])
        texts = page.js("[...document.querySelectorAll('svg.lanes g.open text')].map((one) => one.textContent)")
        assert any(text.startswith("barrier #20 · waits ") for text in texts), texts
        assert any(text.startswith("all_reduce #20 · waits ") for text in texts), texts
        assert page.js("document.querySelectorAll('#lanes .legend i').length") == 2, "a colour for each operation and line"
        fills = page.js("[...document.querySelectorAll('svg.lanes g.open rect')].map((one) => getComputedStyle(one).fill)")
        assert len(set(fills)) == 2
        assert page.js("document.querySelectorAll('svg.lanes text.tick').length") >= 3


def test_a_rank_without_the_call_is_marked(page, pages):
    page.open(pages["absent"])
    assert page.js("[...document.querySelectorAll('svg.lanes g.never text')].map((one) => one.textContent)") == ["never called all_reduce #20"]


def span(page):
    return page.js("Number(document.querySelector('svg.lanes g.call.diverges rect').getAttribute('width'))")


def test_wheel_and_keys_zoom_and_a_click_shows_the_line(page, pages):
    page.open(pages["small"])
    before = span(page)
    page.click("svg.lanes g.call.diverges rect")
    assert "train.py:88" in page.js("document.querySelector('.call-about').textContent")
    assert page.js("document.querySelector('.call-about .hit').textContent").endswith("loss.backward()")
    assert page.js("document.querySelector('.call-about a').getAttribute('href')") == "vscode://file/srv/train.py:88"
    page.press("-")
    page.press("s")
    assert span(page) < before
    zoomed, at = span(page), "Number(document.querySelector('svg.lanes g.call.diverges rect').getAttribute('x'))"
    left = page.js(at)
    page.press("a")
    assert page.js(at) > left and abs(span(page) - zoomed) < 1, "the keys of Perfetto move, too"
    page.press("Home")
    assert abs(span(page) - before) < 1
    page.js("document.querySelector('svg.lanes').dispatchEvent(new WheelEvent('wheel', {deltaY: 100, clientX: 640, cancelable: true}))")
    assert span(page) != before
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert "barrier #20" in page.js("document.querySelector('.call-about').textContent")
    assert page.problems == []


def test_the_decision_stands_between_both_sides_with_its_values(page, pages):
    page.open(pages["small"])
    sides = page.js("[...document.querySelectorAll('#findings .place')].map((one) => one.className.replace('place ', ''))")
    assert sides == ["guilty", "decision", "waiting"]
    values = page.js("[...document.querySelectorAll('#findings .place.decision table.values tr')].map((row) => row.textContent)")
    assert sorted(values) == ["Falseranks 0-1,3", "Truerank 2"]
    page.click("#findings article > details > summary")
    page.js("new Promise((done) => setTimeout(done, 100))")
    assert page.js("document.querySelectorAll('.explanation pre.diff .added').length") >= 1


def test_the_page_gives_back_the_report_and_a_trace(page, pages):
    page.open(pages["small"])
    given = page.js("unpackedReport()")
    written = json.loads(pages["small"].with_suffix(".report.json").read_text())
    assert given["processes"] == written["processes"]
    assert given["stack_diff"] == written["stack_diff"]
    assert given["groups"] == written["groups"]
    assert {json.dumps(edge) for edge in given["wait_for"]["edges"]} == {json.dumps(edge) for edge in written["wait_for"]["edges"]}
    assert given.keys() == written.keys()
    assert len([event for event in page.js("traceEvents()")["traceEvents"] if event["ph"] == "X"]) == 80
    assert page.js("reportMarkdown()").startswith("## ddpdoctor: hang")


def test_why_says_nothing_that_was_read_above(page, pages):
    page.open(pages["small"])
    reasons = page.js("[...document.querySelectorAll('#findings .why li')].map((one) => one.textContent)")
    assert any("#20" in reason for reason in reasons)
    assert [reason for reason in reasons if "(train.py:61, evaluate)" in reason] == [], "the lines above show who is where"
    assert any("(train.py:61, evaluate)" in one["text"] for one in page.js("unpackedReport()")["findings"][0]["evidence"]), "programs get all of it"


def test_a_tick_of_the_axis_is_whole(page, pages):
    page.open(pages["small"])
    assert page.js("[...document.querySelectorAll('svg.lanes text.tick')].every((one) => one.getBBox().x >= 148)")


def test_the_pictures_of_the_docs_are_those_of_the_tests():
    for name in IN_DOCS.values():
        assert (ROOT / "docs" / name).read_bytes().startswith(b"\x89PNG"), f"DDPDOCTOR_DOCS_PICTURES=1 pytest tests/viewer makes docs/{name}"
        assert any(f"]({name})" in doc.read_text() for doc in (ROOT / "docs").glob("*.md")), name


def test_the_theme_can_be_chosen(page, pages):
    page.open(pages["small"])
    page.click("#theme")
    page.click("#theme")
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"


def test_a_phone_has_no_sideways_scroll(pages):
    with browser.Browser(width=420) as phone:
        phone.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=True)
        phone.open(pages["large"])
        assert phone.js("document.documentElement.scrollWidth") <= 420
        inside = "[...document.querySelectorAll('{}')].every((one) => one.getBoundingClientRect().right <= 420)"
        assert phone.js(inside.format("#waits svg g.box rect")), "both boxes of the graph are seen without scrolling"
        assert phone.js("document.querySelectorAll('svg.lanes g.diverges').length") == 2
        assert phone.js(inside.format("svg.lanes g.diverges rect")), "so are the calls at which the ranks differ"
        picture(phone, "phone")


def test_dark_and_paper_differ_from_light(pages):
    with browser.Browser(dark=True) as dark:
        dark.open(pages["small"])
        assert dark.js("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        picture(dark, "dark")
        pdf = dark.call("Page.printToPDF")["data"]
        assert base64.b64decode(pdf).startswith(b"%PDF")
        dark.call("Emulation.setEmulatedMedia", media="print")
        assert dark.js("getComputedStyle(document.getElementById('nav')).display") == "none"
