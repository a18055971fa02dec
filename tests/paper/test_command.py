"""The command that makes a figure, table or report: settings, files, and one-line errors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ngt.files import CHECKOUT
from ngt.runs.shipping.gather import publish
from ngt.settings.load import load
from paper import command
from paper.command import build_parser, find, main, maker, one_line_errors, settings
from paper.drawing import style
from paper.drawing.stamps import stamp
from paper.register import ARTEFACTS, FIGURES, Artefact


@pytest.fixture
def study(make_study: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a study whose settings are saved as scale `quick` in its own folder."""
    monkeypatch.chdir(tmp_path)
    made = make_study(demos=[1], seeds=[0, 1])
    folder = tmp_path / "scales"
    folder.mkdir()
    (folder / "base.yaml").write_text(yaml.safe_dump(made.settings))
    (folder / "quick.yaml").write_text("scale: quick\n")
    monkeypatch.setattr("ngt.settings.options.load", partial(load, directory=folder))
    return made


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must fail with exit code 2; return its one line on stderr."""
    with pytest.raises(SystemExit) as stop:
        main(["main_figure", *arguments])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("main_figure: error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, a in ARTEFACTS.items() if a.files])
def test_shipped_measurements_are_found_from_any_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = CHECKOUT / "results" / "published" / "quick.parquet"
    given = ["--scale", "quick", "--records", str(records), "--set", "statistics.reps=10"]
    found = []
    for folder in (CHECKOUT, tmp_path):
        monkeypatch.chdir(folder)
        out = tmp_path / folder.name / ARTEFACTS[name].file
        main([name, *given, "--results", str(folder / "results"), "--out", str(out)])
        found.append(out.read_bytes())
    assert all(Path(file).is_file() for file in ARTEFACTS[name].files)
    assert found[0] == found[1]


def test_files_are_written(study: Any, fill: Callable[..., None], capsys: Any) -> None:
    fill(study)
    main(["main_figure", "--scale", "quick", "--out", "out/a.pdf", "--png", "out/a.png"])
    names = ["a.caption.md", "a.caption.tex", "a.pdf", "a.png"]
    assert sorted(p.name for p in Path("out").iterdir()) == names
    assert capsys.readouterr().out == "out/a.pdf\n"


def test_the_default_place(study: Any, fill: Callable[..., None]) -> None:
    fill(study)
    main(["main_figure"])
    assert Path("results/main_figure.pdf").exists()


def test_a_run_replaced_while_it_is_drawn_outdates_the_figure(
    study: Any, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(study)
    drawn = command.read

    def replaced(*arguments: Any) -> Any:
        found = drawn(*arguments)
        record = study.layout.run(study.table()[0]) / "run.json"
        record.write_text(record.read_text().replace("100.0", "101.0"))
        return found

    monkeypatch.setattr(command, "read", replaced)
    before = stamp(study.config, study.layout, FIGURES["main_figure"])
    main(["main_figure"])
    assert before != stamp(study.config, study.layout, FIGURES["main_figure"])
    assert before in Path("results/main_figure.caption.md").read_text()


def test_settings_of_the_user(study: Any, fill: Callable[..., None], tmp_path: Path) -> None:
    fill(study)
    study.layout.root.rename("elsewhere")
    Path("mine.yaml").write_text("figures: {main_figure: {methods: [ngt]}}\n")
    main(["main_figure", "--config", "mine.yaml", "--set", "window=2", "--results", "elsewhere"])
    assert Path("elsewhere/main_figure.pdf").exists()


def test_a_partial_table_is_a_choice(study: Any, fill: Callable[..., None], capsys: Any) -> None:
    gone = study.key("dac-r", seed=1)
    fill(study, skip=[gone])
    assert f"run {gone}: missing" in mistake(capsys)
    main(["main_figure", "--allow-partial"])
    assert "partial, runs missing: 1" in capsys.readouterr().out


def test_published_records_of_a_part_are_drawn(
    study: Any, fill: Callable[..., None], capsys: Any
) -> None:
    fill(study, skip=[study.key("dac-r", seed=1)])
    publish(study.layout, load({"scale": "quick"}, Path("scales")), allow_partial=True)
    main(["main_figure", "--records", str(study.layout.published)])
    assert "partial, runs not published: 1" in capsys.readouterr().out
    caption = Path("results/main_figure.caption.md").read_text()
    assert "PARTIAL: 1 of 6 runs are not published" in caption


def test_a_stale_run_is_named(study: Any, fill: Callable[..., None], capsys: Any) -> None:
    fill(study)
    assert "stale" in mistake(capsys, "--set", "train.batch=7")


OTHER = "sac.gamma is 0.99 in the records and 0.5 in the config"


@pytest.fixture
def published(study: Any, fill: Callable[..., None]) -> list[str]:
    """Publish the study's records; return options that draw them with another setting."""
    fill(study)
    publish(study.layout, load({"scale": "quick"}, Path("scales")))
    return ["--records", str(study.layout.published), "--set", "sac.gamma=0.5"]


def test_published_records_of_other_settings_are_a_choice(
    study: Any, published: list[str], capsys: Any, tidy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert OTHER in mistake(capsys, *published, "--allow-partial")
    assert not Path("results/main_figure.pdf").exists(), "the error must precede any drawing"
    drawn: list[Any] = []
    monkeypatch.setattr(style, "save", lambda figure, *_, **__: drawn.append(figure))
    main(["main_figure", *published, "--other-settings"])
    assert OTHER in capsys.readouterr().out
    (figure,) = drawn
    tidy(figure)
    (head,) = [t for t in figure.texts if "OTHER SETTINGS" in t.get_text()]
    assert OTHER in head.get_text().replace("\n", " ") and head.get_color() == style.ALERT


def test_a_table_of_other_settings_says_so_in_every_form(
    study: Any, published: list[str], capsys: Any
) -> None:
    with pytest.raises(SystemExit):
        main(["main_table", *published])
    assert OTHER in capsys.readouterr().err and not Path("results/main_table.csv").exists()
    main(["main_table", *published, "--other-settings"])
    for ending in ("csv", "tex", "json"):
        assert "OTHER SETTINGS: 6 of 6" in Path(f"results/main_table.{ending}").read_text()
    Path("results/main_table.csv").unlink()
    main(["main_table", "--records", published[1]])
    assert "OTHER" not in Path("results/main_table.csv").read_text()


def test_a_page_of_other_settings_says_so(
    study: Any, published: list[str], make_artefacts: Callable[..., None]
) -> None:
    make_artefacts(study)
    with pytest.raises(SystemExit):
        main(["report", *published])
    main(["report", *published, "--other-settings"])
    assert OTHER in Path("results/report.html").read_text()


def test_a_foreign_run_is_named(study: Any, fill: Callable[..., None], capsys: Any) -> None:
    fill(study)
    key, other = study.key("ngt"), study.key("ngt", seed=1)
    study.write(key, [0.0], key={"run": str(other), **dataclasses.asdict(other)})
    assert f"run {key}: " in mistake(capsys, "--allow-partial")
    assert json.loads((study.layout.run(key) / "run.json").read_text())["key"]["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--ouch"], "--ouch"),
        (["--scale", "qick"], "did you mean quick?"),
        (["--set", "windw=3"], "did you mean window?"),
        (["--set", "window"], "expected KEY=VALUE"),
        (["--config", "none.yaml"], "config file none.yaml: "),
        (["--set", "figures.main_figure.rates=[10, 20]"], "figures.main_figure.rates"),
        (["--results", "nowhere"], "missing"),
        (["--records", "scales"], "scales"),
        (["--out", "folder.pdf"], "folder.pdf: can't be written"),
    ],
)
def test_mistakes(
    study: Any, fill: Callable[..., None], capsys: Any, arguments: list[str], text: str
) -> None:
    fill(study)
    Path("folder.pdf").mkdir()
    if arguments[0] == "--set":
        arguments = [*arguments, "--allow-partial"]
    assert text in mistake(capsys, *arguments)


def test_what_the_system_refuses_is_one_line(capsys: Any) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device", "results/x.pdf")

    with pytest.raises(SystemExit) as stop:
        one_line_errors("main_figure", full)
    said = "main_figure: error: results/x.pdf: No space left on device\n"
    assert (stop.value.code, capsys.readouterr().err) == (2, said)


def test_a_config_without_the_figure(study: Any, capsys: Any) -> None:
    settings = {**study.settings, "figures": {}}
    Path("scales/base.yaml").write_text(yaml.safe_dump(settings))
    assert "figures.main_figure" in mistake(capsys)


def test_the_scale_of_an_artefact_that_needs_no_runs(study: Any, tmp_path: Path) -> None:
    """Check that a scale given in any way replaces `paper`, the default scale of the diagram."""
    Path("scales/paper.yaml").write_text("scale: paper\n")
    Path("mine.yaml").write_text("scale: quick\n")

    def scale_of(name: str, *arguments: str) -> str:
        args = build_parser().parse_args([name, *arguments])
        return settings(args, ARTEFACTS[name])[0].scale

    assert scale_of("method_diagram") == "paper"
    assert scale_of("method_diagram", "--scale", "quick") == "quick"
    assert scale_of("method_diagram", "--config", "mine.yaml") == "quick"
    assert scale_of("method_diagram", "--set", "scale=quick") == "quick"
    assert scale_of("method_diagram", "--set", "window=2") == "paper"
    assert scale_of("main_figure") == "quick"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ("paper.nowhere:make", "can't be loaded (ModuleNotFoundError: No module named 'paper.no"),
        ("paper.words:make", "can't be loaded (AttributeError: module 'paper.words' has no attri"),
        ("builtins:print", "returned NoneType, not a paper.command.Made; return one"),
    ],
)
def test_a_wrong_maker_is_one_line(
    study: Any, fill: Callable[..., None], capsys: Any, monkeypatch: Any, make: str, said: str
) -> None:
    fill(study)
    wrong = dataclasses.replace(command.ARTEFACTS["main_table"], make=make)
    monkeypatch.setitem(command.ARTEFACTS, "main_table", wrong)
    with pytest.raises(SystemExit) as stop:
        command.main(["main_table"])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1 and said in error


def test_without_arguments_it_lists_every_artefact(capsys: Any) -> None:
    main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ARTEFACTS)
    (line,) = (line for line in lines if line.startswith("grid_figure "))
    assert "Fig. 3 (grid)" in line and line.endswith(FIGURES["grid_figure"].title)


@pytest.mark.parametrize(
    ("arguments", "name", "text"),
    [
        (["main_figur"], "paper", "did you mean main_figure"),
        (["--scale", "quick"], "paper", "NAME"),
        (["main_table", "--png", "t.png"], "main_table", "--png: main_table is not a figure"),
        (["main_table", "--out", "t.txt"], "main_table", "--out: found t.txt; the file name must"),
        (["main_figure", "--out", "a.svg"], "main_figure", "must end in .pdf"),
        (
            ["main_figure", "--png", "a.jpg"],
            "main_figure",
            "--png: found a.jpg; the file name must",
        ),
        (["report", "--out", "a.htm"], "report", "must end in .html"),
    ],
)
def test_mistakes_in_what_is_asked_for(
    study: Any, capsys: Any, arguments: list[str], name: str, text: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1
    assert err.startswith(f"{name}: error: ") and text in err


@pytest.mark.parametrize("artefact", ARTEFACTS.values(), ids=list(ARTEFACTS))
def test_every_artefact_has_a_maker(artefact: Artefact) -> None:
    assert find(artefact.name) is artefact
    assert callable(maker(artefact))
