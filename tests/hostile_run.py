"""Open hostile files by every way into the package, each in a process of its own.

``python tests/hostile_run.py FOLDER`` writes the files of ``hostile_files.py`` into the
empty FOLDER and prints one line of JSON for each: what every way said, and what a file
did beyond that. The processes are forked from one that has opened an honest file by all
ways, so that nothing is left to import.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from hostile_files import CANARY, write_all
from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.runner.checkpoint import load_checkpoint
from toy_run import ToyModel, toy_runner

from sapiens2_mm.apis import init_model
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.registry import MODELS

SECONDS = 5
BYTES = 100_000_000  # and twice the file
_WAIT = 60  # of the clock, on a busy machine
_ACTIONS = (
    'os.system',
    'os.exec',
    'os.posix_spawn',
    'os.fork',
    'os.forkpty',
    'subprocess.Popen',
    'socket.connect',
    'socket.getaddrinfo',
    'webbrowser.open',
    'ctypes.dlopen',
    'import',
)

MODELS.register_module(name='HostileToyModel', module=ToyModel)


def _load(path: str, folder: Path) -> None:
    model = ToyModel()
    content = load_checkpoint(model, path, map_location='cpu')
    for value in content['state_dict'].values():
        if isinstance(value, torch.Tensor) and (value == CANARY).any():
            raise AssertionError('values of another file')


def _init(path: str, folder: Path) -> None:
    model = dict(type='sapiens2_mm.HostileToyModel')
    init_model(Config(dict(default_scope='sapiens2_mm', model=model)), path)


def _resume(path: str, folder: Path) -> None:
    toy_runner(folder / 'run', iterations=2, load_from=path, resume=True).train()


def _convert(path: str, folder: Path) -> None:
    convert_checkpoint(path, folder / 'ours.safetensors', 'ours', torch.bfloat16)
    convert_checkpoint(path, folder / 'hf', 'transformers', torch.float64)


WAYS: dict[str, Callable[[str, Path], None]] = dict(
    load_checkpoint=_load, init_model=_init, resume=_resume, convert=_convert
)


def _limit(path: Path) -> None:
    size = path.stat().st_size if path.is_file() else 0
    size += sum(p.stat().st_size for p in path.parent.glob('m.*'))
    in_use = 1024 * int(
        Path('/proc/self/status').read_text().split('VmSize:')[1].split()[0]
    )
    memory = in_use + 2 * size + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch(folder: Path, seen: list[str]) -> None:
    """Note actions, imports, and files that are opened outside of ``folder``."""

    def hook(event: str, args: tuple) -> None:
        if event in _ACTIONS and not str(args[0]).startswith('encodings'):
            seen.append(f'{event} {args[0]}')
        elif event in ('open', 'os.remove', 'os.rename', 'os.chmod'):
            target = str(args[0])
            if 'outside' in target or (
                event != 'open' and not target.startswith(str(folder))
            ):
                seen.append(f'{event} {target}')

    sys.addaudithook(hook)


def _open_everywhere(path: Path, out: int) -> None:
    """In the forked process: try all ways and report through ``out``."""
    work = path.parent / 'work'
    work.mkdir()
    os.chdir(work)
    before = sorted(path.parent.rglob('*'))
    seen: list[str] = []
    report: dict = dict(ways={})
    _limit(path)
    _watch(path.parent, seen)
    for way, function in WAYS.items():
        start = time.process_time()
        limit = int(start) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        with open(os.devnull, 'w') as null, contextlib.redirect_stdout(null):
            try:
                function(str(path), work)
                said = 'loaded'
            except Exception as err:
                said = f'{type(err).__name__}: {err}'[:5000]
        report['ways'][way] = said
        report.setdefault('seconds', []).append(time.process_time() - start)
    made = [p for p in sorted(path.parent.rglob('*')) if p not in before]
    report['made'] = [str(p) for p in made if work not in p.parents or p.parent == work]
    report['seen'] = seen[:50]
    os.write(out, json.dumps(report).encode())


def open_in_process(path: Path) -> dict:
    """What the ways said and did, or how the process ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _open_everywhere(path, write)
        except BaseException as err:
            os.write(write, json.dumps(dict(failed=repr(err))[:999]).encode())
        finally:
            os._exit(0)
    os.close(write)
    end, status = time.monotonic() + _WAIT, None
    while status is None and time.monotonic() < end:
        ended, code = os.waitpid(child, os.WNOHANG)
        status = code if ended else time.sleep(0.005)
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with open(read, 'rb') as pipe:
        text = pipe.read()
    if status is None:
        return dict(failed='waits for ever')
    if os.WIFSIGNALED(status):
        return dict(failed=f'ended by {signal.Signals(os.WTERMSIG(status)).name}')
    return json.loads(text)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    wanted = sys.argv[2] if len(sys.argv) > 2 else ''
    torch.set_num_threads(1)
    Runner._log_env = lambda *args: None  # asks git and compilers
    toy_runner(folder / 'honest', iterations=1).train()
    path = folder / 'honest' / 'iter_1.pth'
    honest = torch.load(path, weights_only=False)
    for way, function in WAYS.items():  # nothing is left to import
        place = folder / 'warm' / way
        place.mkdir(parents=True)
        function(str(path), place)
        with contextlib.suppress(ValueError):
            function(str(Path(__file__)), place)
    print(json.dumps(dict(name='honest', **open_in_process(path))), flush=True)
    for name, file in write_all(folder / 'files', honest, wanted):
        print(json.dumps(dict(name=name, **open_in_process(file))), flush=True)


if __name__ == '__main__':
    main()
