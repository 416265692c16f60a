"""What ``pip install`` does besides copying files; read by setuptools alone."""

from pathlib import Path

from setuptools.command.build_py import build_py


class BuildWithStartup(build_py):
    """Has Python import us as it starts, in a wheel and in an editable install.

    mmengine takes ``_base_ = 'sapiens2_mm::...'`` only of packages that it knows, and a
    host may be the first import of a process; ``_import_hooks`` must be there by then.
    """

    def run(self) -> None:
        super().run()
        folder = self.build_lib
        if self.editable_mode:
            folder = self.get_finalized_command('install').install_lib
        Path(folder, 'sapiens2_mm.pth').write_text('import sapiens2_mm\n')
