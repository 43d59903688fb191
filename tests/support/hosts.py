"""Several hosts on this machine: namespaces with a network, a name and an sshd of their own.

Everything lies in one folder, nothing of the user's own is touched, and all ends with the test: a
host is the process that holds its namespaces, and its death is the host's.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
from jobs import _die_with_parent
from support.commands import start
from support.sockets import LISTENS, read_sockets

PROGRAMS = ("ip", "unshare", "nsenter", "ssh", "ssh-keygen", "/usr/sbin/sshd")
SPACES = ("--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")
NETWORK, NIC = "10.77.0", "wg7"
CLOCK = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
SSHD = """\
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
"""
CLIENT = "User root\nIdentityFile {folder}/key\nUserKnownHostsFile {folder}/known_hosts\n"


def why_not():
    """Why there can be no such hosts here; "" if there can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    tried = subprocess.run(
        ["unshare", *SPACES, "mount", "-t", "tmpfs", "tmpfs", "/run"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"namespaces are not permitted: {tried.stderr.strip()}" if tried.returncode else ""


class Host:
    """A machine: what runs on it, sees it alone, and dies with it."""

    def __init__(self, name, number):
        self.name, self.address = name, f"{NETWORK}.{number}"
        self._holder = subprocess.Popen(
            ["unshare", *SPACES, "sleep", "infinity"], preexec_fn=_die_with_parent
        )
        while not psutil.Process(self._holder.pid).children():
            time.sleep(0.01)
        self.pid = psutil.Process(self._holder.pid).children()[0].pid

    def command(self, *words, spaces=("--net", "--mount", "--uts", "--pid")):
        """A command as this host runs it."""
        return [shutil.which("nsenter"), "-t", str(self.pid), *spaces, *map(str, words)]

    def run(self, *words, **options):
        subprocess.run(self.command(*words, **options), check=True, capture_output=True)

    def ip(self, *words):
        """Set up its network, with the processes of the machine in sight."""
        self.run("ip", *words, spaces=["--net"])

    def listening(self):
        """(address, port) of all that listens on this host."""
        found = read_sockets(self.pid).values()
        return {(each.here, each.port) for each in found if each.state == LISTENS}

    def processes(self, word):
        """Those with a word in their command, but for ssh and shells, which only pass it on."""
        space = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or [""]
            try:
                is_here = os.readlink(f"/proc/{process.pid}/ns/pid") == space
            except OSError:
                continue
            if is_here and "python" in words[0] and word in words:
                found.append(process.pid)
        return found

    def die(self):
        """All its processes are killed at once, sshd too."""
        self._holder.kill()
        os.kill(self.pid, signal.SIGKILL)
        self._holder.wait()


class Hosts:
    """Some hosts on one wire, each known to the others by name, with keys for ssh."""

    def __init__(self, folder, *names):
        self.folder = folder
        for key in ("key", "host_key"):
            self._do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
        (folder / "ssh_config").write_text(CLIENT.format(folder=folder))
        (folder / "bin").mkdir()
        client = folder / "bin" / "ssh"
        client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        client.chmod(0o755)
        self.wire = Host("wire", 0)
        self.wire.ip("link", "add", "wire", "type", "bridge")
        self.wire.ip("link", "set", "wire", "up")
        self.all = {name: Host(name, number) for number, name in enumerate(names, start=1)}
        key = (folder / "host_key.pub").read_text()
        known = "".join(f"{host.name},{host.address} {key}" for host in self.all.values())
        (folder / "known_hosts").write_text(known)
        lines = [f"{host.address} {host.name}\n" for host in self.all.values()]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
        for host in self.all.values():
            self.begin(host)

    def begin(self, host):
        """Connect a host and start its sshd."""
        name, address = host.name, host.address
        self.wire.ip(
            "link", "add", "name", name, "type", "veth", "peer", "name", NIC, "netns", host.pid
        )
        self.wire.ip("link", "set", "dev", name, "master", "wire", "up")
        host.ip("link", "set", "lo", "up")
        host.ip("address", "add", f"{address}/24", "dev", NIC)
        mac = f"02:00:00:00:00:{address.rpartition('.')[2].zfill(2)}"
        host.ip("link", "set", "dev", NIC, "address", mac, "up")  # the same after a new start
        host.run("hostname", name)
        host.run("mount", "--bind", self.folder / "hosts", "/etc/hosts")
        host.run("mount", "-t", "tmpfs", "tmpfs", "/run")
        host.run("mkdir", "/run/sshd")
        self.serve(host)

    def serve(self, host, more=""):
        """Start the sshd of a host."""
        settings = self.folder / f"sshd_{host.name}"
        settings.write_text(SSHD.format(folder=self.folder, address=host.address) + more)
        host.run("/usr/sbin/sshd", "-f", settings)

    def set_clock(self, name, difference):
        """Have all that comes by ssh see another time, by libfaketime."""
        host = self.all[name]
        for process in psutil.process_iter(["cmdline"]):
            if str(self.folder / f"sshd_{name}") in " ".join(process.info["cmdline"] or []):
                process.kill()
        clock = f"LD_PRELOAD={CLOCK} FAKETIME={difference} DONT_FAKE_MONOTONIC=1"
        self.serve(host, f"SetEnv {clock}\n")

    def revive(self, name):
        """A host that died comes back with the same name and address."""
        with suppress(subprocess.CalledProcessError):  # the kernel takes its time
            self.wire.ip("link", "delete", "dev", name)
        host = Host(name, int(self.all[name].address.rpartition(".")[2]))
        self.all[name] = host
        self.begin(host)

    def cut_off(self, name):
        """Pull the plug of a host: nobody is told."""
        self.wire.ip("link", "set", "dev", name, "down")

    def train(self, output, *options, on, **environment):
        """`HOSTS=a:1,b:1 launch/train.sh …` on one of the hosts."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        hosts = ",".join(f"{name}:1" for name in self.all)
        with open(output, "w") as file:
            return start(
                *self.all[on].command(*options),
                output=file,
                **{"PATH": path, "HOSTS": hosts, **environment},
            )

    def close(self):
        for host in (*self.all.values(), self.wire):
            if host._holder.poll() is None:
                host.die()

    @staticmethod
    def _do(*words):
        subprocess.run([str(word) for word in words], check=True, capture_output=True)
