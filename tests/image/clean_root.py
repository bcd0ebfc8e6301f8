"""Executes the Dockerfile's steps in a new Debian, with debootstrap and chroot instead of a container.

The program needs root. All mounts are in a namespace of the command that needs them, and end with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.image.dockerfile import ROOT, stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.image.dockerfile import Instruction

# The image `python` has the same files, but here `python3` is Debian's own Python.
_DEBIAN = ("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm")
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
# A company's certificate authorities, with which its machines reach the package registries.
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class CleanRoot:
    """A root folder for processes, with the variables, user and working directory of the image."""

    def __init__(self, folder: Path, variables: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.variables = variables or {"PATH": _PATH, "HOME": "/root"}
        self.workdir = "/"
        self.user = "0:0"

    def copy(self, folder: Path) -> CleanRoot:
        subprocess.run(["cp", "-a", "--reflink=auto", self.folder, folder], check=True)
        return CleanRoot(folder, dict(self.variables))

    def command(self, *words: str, user: str | None = None, **variables: str) -> list[str]:
        """Returns the command line that runs this command in the root."""
        settings = [f"{name}={value}" for name, value in {**self.variables, **variables}.items()]
        mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$@"'
        inside = [f"--userspec={user or self.user}", "--groups=", str(self.folder), "env", "-i", *settings]
        change = ["sh", "-c", 'cd "$0" && exec "$@"', self.workdir]
        return [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, str(self.folder)),
            *(*inside, *change, *words),
        ]

    def run(self, *words: str, user: str | None = None, **variables: str) -> str:
        """Runs the command to its end, and returns its output."""
        ran = subprocess.run(
            self.command(*words, user=user, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-4000:]}"
        return ran.stdout

    def path(self, inside: str) -> Path:
        return self.folder / inside.removeprefix("/")


def built(folder: Path) -> CleanRoot:
    """Returns the root of the Dockerfile's last stage. Takes some minutes and 3 GB."""
    roots = {}
    for number, stage in enumerate(stages()):
        root = (
            roots[stage.parent].copy(folder / f"stage-{number}")
            if stage.parent in roots
            else _debian(folder / f"stage-{number}")
        )
        roots[stage.name] = root
        for instruction in stage.instructions:
            _carry_out(instruction, root, roots)
    return root


def _debian(folder: Path) -> CleanRoot:
    made = subprocess.run([*_DEBIAN, str(folder)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-4000:]
    root = CleanRoot(folder)
    # Slim images have no manual pages, so packages must not rely on their folders.
    root.path("/etc/dpkg/dpkg.cfg.d/slim").write_text("path-exclude /usr/share/man/*\npath-exclude /usr/share/doc/*\n")
    shutil.rmtree(root.path("/usr/share/man"))
    root.path("/usr/share/man").mkdir()
    for file in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(file, root.path(file))
    if _AUTHORITIES.is_dir():
        shutil.copytree(_AUTHORITIES, root.path(str(_AUTHORITIES)), dirs_exist_ok=True)
    root.run("update-ca-certificates")
    root.path("/usr/local/bin/python").symlink_to("/usr/bin/python3")
    return root


def _carry_out(instruction: Instruction, root: CleanRoot, roots: dict[str, CleanRoot]) -> None:
    match instruction.word:
        case "RUN":
            # The registries' certificates may be from a company, and pip has its own list of authorities.
            root.run("sh", "-c", instruction.text, PIP_CERT=_BUNDLE, **_proxies())
        case "ENV":
            for assignment in instruction.words:
                name, _, value = assignment.partition("=")
                root.variables[name] = value.replace("$PATH", root.variables["PATH"])
        case "WORKDIR":
            root.workdir = instruction.text
            root.path(root.workdir).mkdir(parents=True, exist_ok=True)
        case "USER":
            root.user = instruction.text
        case "COPY":
            _copy(instruction.words, root, roots)
        case "VOLUME" | "EXPOSE" | "HEALTHCHECK" | "ENTRYPOINT" | "CMD":
            pass
        case other:
            raise AssertionError(f"the test cannot carry out {other}")


def _copy(words: Sequence[str], root: CleanRoot, roots: dict[str, CleanRoot]) -> None:
    source = ROOT
    if words[0].startswith("--from="):
        source, words = roots[words[0].removeprefix("--from=")].folder, words[1:]
    *names, into = words
    target = root.path(into if into.startswith("/") else f"{root.workdir}/{into}")
    for name in names:
        found = source / name.removeprefix("/")
        if found.is_dir():
            # Git's files without caches, as with `.dockerignore`.
            caches = None if source != ROOT else shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True, ignore=caches)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, target / found.name if into.endswith("/") else target)


def _proxies() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    }
