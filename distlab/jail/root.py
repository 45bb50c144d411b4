"""The files that a jail sees: a root made of what Python needs, and an empty home.

/usr /lib* /bin ...      the system's, read-only; of /etc what programs look up
Python, its libraries    where they are outside, read-only; of a checkout distlab/
/tmp /dev/shm, the home  of one limited file system in memory; who is alone has others,
                         and in its home the files that there were, read-only
the exchange folder      where it is outside; both sides write
/proc                    of its own processes
"""

import contextlib
import os
import shutil
import site
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from distlab.jail import system

__all__ = ["DISK", "HOME", "build", "empty", "fill", "private_disk"]

HOME = "/home/learner"
DISK = "/disk"
_FILES = f"{DISK}/files"
_USER = "learner"
_NEW_ROOT = "/tmp"  # in the mounts of the jail's own; any folder would do

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM += ("/nix/store", "/gnu/store", "/sys/devices/system/cpu")
_ETC = "alternatives ca-certificates fonts host.conf java-17-openjdk ld.so.cache "
_ETC += "ld.so.conf ld.so.conf.d localtime locale.alias mime.types protocols services "
_ETC += "pki ssl terminfo"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_INODES = 50_000


def build(folder: str, disk_bytes: int, uid: int, files: str | None) -> None:
    """Make the root, and enter it; called by the init in mounts and pids of its own.

    files: a folder whose content the home is to have.
    """
    system.private_mounts()
    library = [(path, system.taken(path, system.READ_ONLY)) for path in _library()]
    trees = [(path, system.taken(path, system.READ_ONLY)) for path in _systems()]
    devices = [(path, system.taken(path)) for path in _devices()]
    exchange = system.taken(folder)
    source = None if files is None else os.open(files, os.O_RDONLY)
    links = [(p, os.readlink(p)) for p in _SYSTEM if os.path.islink(p)]
    system.mount("tmpfs", _NEW_ROOT, "size=4m,mode=755")
    for path, target in links:
        os.symlink(target, _NEW_ROOT + path)
    for path, tree in trees + devices:
        _attach(tree, _NEW_ROOT, path)
    for name, target in _LINKS.items():
        os.symlink(f"/proc/self/fd{target}", f"{_NEW_ROOT}/dev/{name}")
    # What cells start with ! has a terminal. Ranks that are apart do not share it.
    _mount(_NEW_ROOT, "devpts", "/dev/pts", "ptmxmode=0666,max=64")
    os.symlink("pts/ptmx", f"{_NEW_ROOT}/dev/ptmx")
    _write_etc(Path(_NEW_ROOT, "etc"), uid)
    _mount(_NEW_ROOT, "proc", "/proc", "")
    most = f"size={disk_bytes},nr_inodes={_INODES},mode=700"
    _mount(_NEW_ROOT, "tmpfs", DISK, most)
    _lay_disk(_NEW_ROOT, "jail", uid)
    if source is not None:
        _copy(source, _NEW_ROOT + HOME, uid)
        _pin_files(_NEW_ROOT)
    for path, tree in library:
        _attach(tree, _NEW_ROOT, path)
    _attach(exchange, _NEW_ROOT, folder)
    system.pivot(_NEW_ROOT)


def private_disk(name: str, uid: int, folder: str) -> None:
    """Put empty ones in the place of /tmp, /dev/shm and the home; hide the folder.

    Called in mounts of one's own. The processes' own /proc is mounted anew, without the
    rest of the machine's.
    """
    library = [(path, system.taken(path)) for path in _library() if _below_disk(path)]
    _lay_disk("", name, uid)
    for path, tree in library:
        _attach(tree, "", path)
    for each in _names_in(_FILES):
        _attach(system.taken(f"{_FILES}/{each}"), "", f"{HOME}/{each}")
    _mount_proc()
    system.detach(DISK)
    system.detach("/dev/pts")
    if os.path.ismount(folder):
        system.detach(folder)


def _mount_proc():
    """Mount /proc with processes alone: its counters of the whole machine tell others.

    Before Linux 5.8 there is no such option, and all of it is there.
    """
    try:
        system.mount("proc", "/proc", "subset=pid")
    except OSError:
        system.mount("proc", "/proc")


def fill(home: str, files: str | None, uid: int) -> None:
    """Make the home where there is no root of one's own; who is alone may read it."""
    os.makedirs(home, exist_ok=True)
    if files is not None:
        _copy(os.open(files, os.O_RDONLY), home, uid)
    for folder, mode in ((home, 0o755), (os.path.dirname(home), 0o711)):
        os.chown(folder, uid, uid)
        os.chmod(folder, mode)


def empty(folder: str) -> None:
    """Remove what is in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.remove(entry.path)


def _below_disk(path):
    return path.startswith(("/tmp/", "/dev/shm/", HOME + "/"))


def _library():
    """Return the folders that hold Python and its libraries, outer ones first."""
    checkout = Path(__file__).parents[1]
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    packages = [
        path
        for path in [*sys.path, site.getusersitepackages()]
        if os.path.basename(path) in ("site-packages", "dist-packages")
    ]
    found = [str(checkout), *prefixes, *packages]
    found = {path for name in found for path in (name, os.path.realpath(name))}
    return _outermost(path for path in found if os.path.isdir(path))


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not below another one, nor of the system's."""
    kept = []
    for path in sorted(paths, key=len):
        covered = [*kept, *(s for s in _SYSTEM if not os.path.islink(s))]
        if not any(path == outer or path.startswith(outer + "/") for outer in covered):
            kept.append(path)
    return kept


def _systems():
    paths = [path for path in _SYSTEM if not os.path.islink(path)]
    paths += [f"/etc/{name}" for name in _ETC.split()]
    return [path for path in paths if os.path.exists(path)]


def _devices():
    return [p for p in (f"/dev/{name}" for name in _DEVICES) if os.path.exists(p)]


def _attach(tree, root, path):
    place = root + path
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(place).touch()
    system.attach(tree, place)


def _mount(root, kind, where, options):
    os.makedirs(root + where, exist_ok=True)
    system.mount(kind, root + where, options)


def _lay_disk(root, name, uid):
    """Attach parts of the limited file system at /tmp, /dev/shm and the home."""
    own = os.path.join(root + DISK, name)
    os.mkdir(own)
    for place, mode in (("/tmp", 0o1777), ("/dev/shm", 0o1777), (HOME, 0o700)):
        part = os.path.join(own, os.path.basename(place))
        os.mkdir(part)
        os.chmod(part, mode)
        if place == HOME:  # the others stay the init's: nothing in them can be moved
            os.chown(part, uid, uid)
        os.makedirs(root + place, exist_ok=True)
        system.attach(system.taken(part), root + place)


def _pin_files(root):
    """Attach what is in the home elsewhere, too, where nobody of the jail comes."""
    for name in _names_in(root + HOME):
        tree = system.taken(f"{root}{HOME}/{name}", system.READ_ONLY)
        _attach(tree, root, f"{_FILES}/{name}")


def _names_in(folder):
    return os.listdir(folder) if os.path.isdir(folder) else []


def _write_etc(etc, uid):
    """Write what programs look up about users and hosts: nothing of the real ones."""
    etc.mkdir(exist_ok=True)
    nobody = "/nonexistent:/bin/false"
    users = f"root:x:0:0::{nobody}\n{_USER}:x:{uid}:{uid}::{HOME}:/bin/sh\n"
    (etc / "passwd").write_text(users)
    (etc / "group").write_text(f"root:x:0:\n{_USER}:x:{uid}:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost jail\n::1 localhost\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")


def _copy(source, target, uid):
    """Copy the folders and plain files in a folder; nothing that they link to."""
    os.chown(target, uid, uid)
    with os.scandir(source) as entries:
        for entry in entries:
            name = os.path.join(target, entry.name)
            try:
                inner = os.open(entry.name, os.O_RDONLY | _AS_IT_IS, dir_fd=source)
            except OSError:
                continue  # a link, or what even its owner cannot read
            kind = os.fstat(inner).st_mode
            if stat.S_ISDIR(kind):
                os.mkdir(name, 0o755)
                _copy(inner, name, uid)
                continue
            if stat.S_ISREG(kind):
                with open(name, "wb") as copy, open(inner, "rb", closefd=False) as file:
                    copy.write(file.read())
                os.chown(name, uid, uid)
            os.close(inner)
    os.close(source)


_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK
