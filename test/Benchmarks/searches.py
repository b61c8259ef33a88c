"""Runs `meshwork tune` for the scripts that look at what it finds."""
import json
import subprocess

NOTHING = 78  # exit code: no spec is legal, or none fits


def best_of(tools, model, ranks, machine, batch, words, longest=None):
    """What it found for so many ranks, as --json has it; None where it found nothing. `batch` has global and sequence; `longest`
    are seconds, after which subprocess.TimeoutExpired is raised."""
    command = [tools / "meshwork", "tune", model, "--ranks", ranks, "--machine", machine, "--global", batch["global"],
               "--sequence", batch["sequence"], "--json", *words]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=longest)
    if done.returncode == NOTHING:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)["found"][0]


def fixed(settings):
    """Words of the command line for keys and their values in TOML."""
    return [word for key, value in settings.items() for word in ("--fixed", f"{key}={value}")]


def axes(sizes):
    return [word for axis, size in sizes.items() for word in ("--axis", f"{axis}={size}")]
