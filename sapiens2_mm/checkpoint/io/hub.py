"""Download checkpoints from the Hugging Face Hub."""

import os
import re
from dataclasses import dataclass
from logging import WARNING
from pathlib import Path, PurePosixPath

from mmengine.logging import print_log

from ..errors import CheckpointError
from .file_kind import other_kind
from .shard_index import INDEX_SUFFIX, shards_of

# Of files of weights, the best form first; the last two are those of Sapiens.
_SUFFIXES = (INDEX_SUFFIX, '.safetensors', '.pth', '.pt2')
_FORM = 'hf://OWNER/REPO[@REVISION][/FILE]'
_HUB_ADDRESS = re.compile(
    r'hf://(?P<repo>[^/@]+/[^/@]+)(@(?P<revision>[^/]+))?(/(?P<file>.+))?'
)
_OFFICIAL_REPO = re.compile(r'[^/]+/sapiens2-(?P<task>[a-z]+)-(?P<size>[0-9a-z.\-]+)')


@dataclass(frozen=True)
class HubAddress:
    """``hf://OWNER/REPO[@REVISION][/FILE]`` in parts."""

    repo: str
    revision: str | None = None
    file: str | None = None

    @classmethod
    def parse(cls, address: str) -> 'HubAddress':
        match = _HUB_ADDRESS.fullmatch(address)
        if match is None:
            raise CheckpointError(f'{address!r} is no hub address; write {_FORM}')
        return cls(match['repo'], match['revision'], match['file'])

    @property
    def official_file(self) -> str | None:
        """The name that the publishers give to the one file of such a repository."""
        match = _OFFICIAL_REPO.fullmatch(self.repo)
        if match is None:
            return None
        size = match['size'].replace('-', '_')
        return f'sapiens2_{size}_{match["task"]}.safetensors'


def download_hub_file(address: str) -> Path:
    """The local copy of an ``hf://`` address, all shards of it for an index file.

    Cache, token, offline mode and progress bar are those of ``huggingface_hub``
    (``HF_HOME``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``, ...). Without a file name, the
    official name is tried, then the only file of weights of the repository.

    Raises:
        CheckpointError: says what the hub answered and what to do.
    """
    from huggingface_hub import errors

    parts = HubAddress.parse(address)
    try:
        name, path = _download(parts)
        if name.endswith(INDEX_SUFFIX):
            folder = PurePosixPath(name).parent
            for shard in sorted(set(shards_of(path).values())):
                _get(parts, str(folder / shard))
        return path
    except CheckpointError:
        raise
    except (OSError, ValueError, errors.HTTPError, errors.EntryNotFoundError) as err:
        raise CheckpointError(f'{address}: {_meaning(err, parts)}') from err


# Exception of huggingface_hub, the nearest class counts -> what it means to the user.
_MEANINGS = {
    'GatedRepoError': (
        'it is behind a license: accept it on https://huggingface.co/{repo} with your '
        'account, then log in by `hf auth login` or set HF_TOKEN'
    ),
    'RepositoryNotFoundError': (
        'the hub shows no repository {repo}. Check the name; if it is private or its '
        'license must be accepted, do so on its page, then log in by `hf auth login` '
        'or set HF_TOKEN'
    ),
    'RevisionNotFoundError': '{repo} has no revision {revision!r}',
    'LocalEntryNotFoundError': (
        'it is not in the local cache {cache} and the hub cannot be reached (no '
        'connection, or HF_HUB_OFFLINE is set). Run this once with a connection, or '
        'fetch {endpoint}/{repo}/resolve/{revision}/{file} elsewhere, put it anywhere '
        'and give its path as the checkpoint'
    ),
    'EntryNotFoundError': '{repo} has no file {file!r}',
    'ValueError': 'it is no hub address ({cause}); write ' + _FORM,
}
_DOWNLOAD_FAILED = 'the download failed ({cause}); try again, what has arrived is kept'


def _meaning(err: Exception, parts: HubAddress) -> str:
    from huggingface_hub import constants

    names = [cls.__name__ for cls in type(err).__mro__]
    known = [_MEANINGS[name] for name in names if name in _MEANINGS]
    return (known or [_DOWNLOAD_FAILED])[0].format(
        repo=parts.repo,
        revision=parts.revision or 'main',
        cache=_cache_dir() or constants.HF_HUB_CACHE,
        endpoint=_endpoint() or constants.ENDPOINT,
        file=parts.file or parts.official_file or 'FILE',
        cause=_first_line(err.__cause__ or err),
    )


def _first_line(err: BaseException) -> str:
    return f'{type(err).__name__}: {str(err).strip().splitlines()[:1]}'


def _download(parts: HubAddress) -> tuple[str, Path]:
    """The name in the repository and the local path."""
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    if parts.file:
        return parts.file, _get(parts, parts.file)
    if parts.official_file:
        try:
            return parts.official_file, _get(parts, parts.official_file)
        except EntryNotFoundError as err:  # a mirror with other names has something
            if isinstance(err, LocalEntryNotFoundError):
                raise
    name = _only_weights_of(parts)
    return name, _get(parts, name)


def _only_weights_of(parts: HubAddress) -> str:
    from huggingface_hub import HfApi, constants, snapshot_download

    if _is_offline() or constants.HF_HUB_OFFLINE:
        folder = snapshot_download(
            parts.repo,
            revision=parts.revision,
            cache_dir=_cache_dir(),
            local_files_only=True,
        )
        found_paths = (path for path in Path(folder).rglob('*') if path.is_file())
        files = [path.relative_to(folder).as_posix() for path in found_paths]
    else:
        files = HfApi(endpoint=_endpoint()).list_repo_files(
            parts.repo, revision=parts.revision
        )
    kinds = [[f for f in files if f.endswith(suffix)] for suffix in _SUFFIXES]
    found = next((names for names in kinds if names), [])
    if len(found) == 1:
        return found[0]
    names = f'{len(found)} files of weights {found[:8]}'
    raise CheckpointError(f'hf://{parts.repo} has {names}; name one as {_FORM}')


def _get(parts: HubAddress, file: str) -> Path:
    from huggingface_hub import hf_hub_download

    def get(**options: bool) -> tuple[Path, str | None]:
        path = hf_hub_download(
            parts.repo,
            file,
            revision=parts.revision,
            endpoint=_endpoint(),
            cache_dir=_cache_dir(),
            local_files_only=_is_offline(),
            **options,
        )
        return Path(path), other_kind(Path(path), Path(file).suffix)

    path, kind = get()
    if kind and not _is_offline():
        text = f'{path} is in the cache and {kind}; it is fetched anew'
        print_log(text, logger='current', level=WARNING)
        path, _ = get(force_download=True)
    return path


# huggingface_hub reads these variables when it is imported, we when they are needed.
def _endpoint() -> str | None:
    return os.environ.get('HF_ENDPOINT')


def _cache_dir() -> str | None:
    home = os.environ.get('HF_HOME')
    return os.environ.get('HF_HUB_CACHE') or (home and os.path.join(home, 'hub'))


def _is_offline() -> bool:
    return os.environ.get('HF_HUB_OFFLINE', '').upper() in ('1', 'ON', 'YES', 'TRUE')
