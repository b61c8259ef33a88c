"""A temporary folder that looks like the repository's root to the tools: build/bin and
examples are links, everything else is written by the test and removed with it."""
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build" / "bin")).resolve()
TIMEOUT_S = 300  # of what hangs; a busy machine takes its time
# Open MPI wants root to say so, and reports in vain where one process may not read another's memory.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
USAGE, DATA, NO_INPUT, CANNOT_CREATE, SPEC = 64, 65, 66, 73, 78


class Shell:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="meshwork-")
        self.path = pathlib.Path(self._folder.name)
        (self.path / "build").mkdir()
        (self.path / "build" / "bin").symlink_to(BIN)
        for name in ("examples", "README.md"):
            (self.path / name).symlink_to(ROOT / name)

    def close(self):
        self._folder.cleanup()

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path / name, mode) as out:
            out.write(content)
        return name

    def read(self, name):
        return (self.path / name).read_text()

    def run(self, *command):
        """The finished process. A tool is named without its folder; one argument
        alone is a line for the shell."""
        if len(command) == 1:
            command = ["bash", "-ec", command[0]]
        elif command[0].startswith("meshwork"):
            command = [str(BIN / command[0]), *map(str, command[1:])]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT_S, env=ENVIRONMENT,
                              stdin=subprocess.DEVNULL)

    def must(self, *command):
        done = self.run(*command)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def refuse(self, code, needles, *command):
        """The tool must end with `code` and say each of `needles` on stderr."""
        done = self.run(*command)
        shown = f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
        if done.returncode != code:
            raise AssertionError(f"exit {done.returncode}, expected {code}: {shown}")
        for needle in needles:
            if needle not in done.stderr:
                raise AssertionError(f"{needle!r} is not said: {shown}")
        return done
