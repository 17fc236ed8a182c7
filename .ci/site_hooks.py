"""Let the site contain the pages that are kept at the top of the repository."""

from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files, config):
    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Rewrite links between `docs/` and the top of the repository."""
    if page.file.src_uri in PAGES:
        return markdown.replace("](docs/", "](")
    for name in PAGES:
        markdown = markdown.replace(f"](../{name}", f"]({name}").replace(
            f"](../../{name}", f"](../{name}"
        )
    return markdown
