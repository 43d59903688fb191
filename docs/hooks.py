"""What MkDocs needs to build the site: the pages of results/, and a reference page per room."""

from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "dp",
    "attacks",
    "runs",
    "training",
    "models",
    "tasks",
    "data",
    "metrics",
    "reports",
    "serving",
    "runtime",
)


def on_files(files, config):
    """Add the pages that are not below docs/."""
    for path in sorted((ROOT / "results").glob("*.md")):
        files.append(File.generated(config, f"results/{path.name}", content=path.read_text()))
    index = ["# API", "", "One page per room of the package, made from its docstrings.", ""]
    for room in ROOMS:
        folder = ROOT / "edp_mx" / room
        packages = [path.parent for path in sorted(folder.rglob("__init__.py"))]
        paths = sorted(path for package in packages for path in package.glob("[!_]*.py"))
        modules = [path.relative_to(ROOT) for path in paths]
        names = [".".join(path.with_suffix("").parts) for path in modules]
        text = "\n\n".join([f"# {room}", *(f"::: {name}" for name in names)])
        files.append(File.generated(config, f"api/{room}.md", content=text))
        index.append(f"- [{room}]({room}.md)")
    files.append(File.generated(config, "api/index.md", content="\n".join(index) + "\n"))
    return files


def on_page_markdown(markdown, **_):
    """Point links at what the site has: results/ lies beside docs/ in the repository."""
    return markdown.replace("](../results/", "](results/").replace("](../docs/", "](../")
