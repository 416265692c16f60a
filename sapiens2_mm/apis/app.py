"""Web page that predicts pictures [gradio]."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import gradio as gr
import numpy as np
from gradio.data_classes import ImageData

from .app_results import (
    hex_colors,
    legend,
    part_masks,
    photo_and_drawing,
    read_upload,
    write_cloud_view,
    write_results,
)
from .inference import Inferencer, infer
from .jobs import make_jobs
from .results import PoseResult, Result

_CSS = """
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 0; }
.legend li { display: flex; align-items: center; font-size: 14px; margin: 0; }
.legend i { width: 14px; height: 14px; margin-right: 6px; border: 1px solid #888; }
.legend b { margin-left: 5px; }
.legend .absent { opacity: 0.45; }
"""
_INTRO = """# Sapiens2
Choose a photo of people, tick what you want to know, and press **Predict**. Photo and
results stay on the computer that runs this page and are deleted within minutes.
"""
_WAITING = 'Results appear here.'
_TITLES = dict(
    pose='Keypoints',
    seg='Body parts',
    normal='Normals',
    pointmap='3-D points',
    albedo='Albedo',
    depth='Depth',
    matting='Foreground',
)


@contextmanager
def serve(
    inferencers: Mapping[str, Inferencer],
    find_people: Callable[[np.ndarray], np.ndarray] | None = None,
    *,
    host: str = '127.0.0.1',
    port: int | None = None,
    max_bytes: int = 20_000_000,
    max_pixels: int = 40_000_000,
    keep_seconds: int = 600,
) -> Iterator[str]:
    """Serve the page until the context ends.

    Requests wait in one queue and share nothing. Uploads and results lie in a folder
    of temporary files; each is deleted after ``keep_seconds``, all of them at the end.
    Nothing is asked of other hosts.

    Args:
        inferencers: name -> inferencer.
        find_people: for pose, see the detectors of ``Inferencer``; None takes the
            default one.
        host: address to listen at; ``'0.0.0.0'`` lets other computers in.
        port: None takes a free one.
        max_bytes: of an uploaded file.
        max_pixels: of a picture.
        keep_seconds: that files can be downloaded.

    Yields:
        The address of the page.

    Raises:
        OSError: if the port is taken.
    """
    with TemporaryDirectory(prefix='sapiens2_app_') as folder, _cache(folder):
        page = _page(inferencers, find_people, folder, max_pixels, keep_seconds)
        try:
            _, url, _ = page.queue(max_size=20).launch(
                server_name=host,
                server_port=port,
                max_file_size=max_bytes,
                prevent_thread_lock=True,
                quiet=True,
                share=False,
                ssr_mode=False,
                mcp_server=False,
                run_history=False,
                enable_monitoring=False,
                footer_links=[],
                css=_CSS,
                theme=gr.themes.Default(
                    font=[gr.themes.Font('system-ui'), gr.themes.Font('sans-serif')],
                    font_mono=[gr.themes.Font('monospace')],
                ),
            )
            yield url
        finally:
            page.close(verbose=False)


@contextmanager
def _cache(folder: str) -> Iterator[None]:
    """Have gradio put its files here; it has no argument for this."""
    before = os.environ.get('GRADIO_TEMP_DIR')
    os.environ['GRADIO_TEMP_DIR'] = folder
    try:
        yield
    finally:
        del os.environ['GRADIO_TEMP_DIR']
        if before is not None:
            os.environ['GRADIO_TEMP_DIR'] = before


def _page(
    inferencers: Mapping[str, Inferencer],
    find_people: Callable[[np.ndarray], np.ndarray] | None,
    folder: str,
    max_pixels: int,
    keep_seconds: int,
) -> gr.Blocks:
    page = gr.Blocks(
        title='Sapiens2',
        analytics_enabled=False,
        delete_cache=(max(1, keep_seconds // 10), keep_seconds),
    )
    has_pose = any(i.task.name == 'pose' for i in inferencers.values())
    with page:
        gr.Markdown(_INTRO)
        with gr.Row():
            with gr.Column(scale=1, min_width=300):
                photo = gr.Image(
                    label='Photo',
                    sources=['upload', 'webcam', 'clipboard'],
                    type='filepath',
                    height=320,
                )
                # gradio would decode it by rules and with errors of its own
                photo.preprocess = _path_of
                names = gr.CheckboxGroup(
                    [(_TITLES.get(name, name), name) for name in inferencers],
                    value=list(inferencers),
                    label='Tasks',
                )
                whole_image = gr.Checkbox(
                    visible=has_pose,
                    label='One person fills the picture',
                )
                button = gr.Button('Predict', variant='primary')
            with gr.Column(scale=2, min_width=300):
                notes = gr.Markdown(_WAITING)
                with gr.Tabs() as tabs:
                    panels = {
                        name: _Panel(name, inferencer)
                        for name, inferencer in inferencers.items()
                    }
        show = _predictor(inferencers, find_people, panels, folder, max_pixels)
        shown = [part for panel in panels.values() for part in panel.parts]
        button.click(
            show,
            [photo, names, whole_image],
            [notes, tabs, *shown],
            show_progress_on=photo,
            concurrency_limit=1,  # the models and visualizers are for one at a time
            api_name='predict',
        )
        photo.change(
            lambda: (_WAITING, *[gr.Tab(visible=False)] * len(panels)),
            None,
            [notes, *(panel.parts[0] for panel in panels.values())],
            queue=False,
            api_name=False,
        )
    return page


def _path_of(payload: ImageData | None) -> str | None:
    return payload and payload.path


class _Panel:
    """The tab of one model.

    Args:
        name: of the model.
        inferencer: of the model.
    """

    def __init__(self, name: str, inferencer: Inferencer) -> None:
        self.name = name
        self.inferencer = inferencer
        meta, task = inferencer.task.meta, inferencer.task.name
        with gr.Tab(_TITLES.get(name, name), id=name, visible=False) as tab:
            with gr.Row():
                slider = gr.ImageSlider(label='Photo and result', show_label=True)
                if task == 'seg':
                    parts = gr.AnnotatedImage(
                        label='Point at a name to see the part',
                        color_map=hex_colors(meta),
                    )
                elif task == 'pointmap':
                    cloud = gr.Model3D(
                        label='Points: drag to turn, scroll to zoom',
                        display_mode='point_cloud',
                        camera_position=(90, 90, None),  # in front
                        height=400,
                    )
            self.parts = [tab, slider]
            if task == 'seg':
                self.parts += [parts, gr.HTML()]
            elif task == 'pointmap':
                self.parts.append(cloud)
            files = gr.File(label='Downloads', file_count='multiple', interactive=False)
            self.parts.append(files)

    def values(self, result: Result | None, folder: Path) -> list[Any]:
        """New values of ``parts``; of a model that was not asked if None."""
        if result is None:
            return [gr.Tab(visible=False), *[None] * (len(self.parts) - 1)]
        task = self.inferencer.task
        values = [gr.Tab(visible=True), photo_and_drawing(self.inferencer, result)]
        if task.name == 'seg':
            values.append(part_masks(result, task.meta['classes']))
            values.append(legend(task.meta, result.labels))
        elif task.name == 'pointmap':
            values.append(write_cloud_view(result, folder / f'{self.name}_view.ply'))
        return [*values, write_results(self.inferencer, result, self.name, folder)]


def _predictor(
    inferencers: Mapping[str, Inferencer],
    find_people: Callable[[np.ndarray], np.ndarray] | None,
    panels: Mapping[str, _Panel],
    cache: str,
    max_pixels: int,
) -> Callable[..., list[Any]]:
    """The function behind the button."""

    def predict(photo: str | None, names: list[str], whole_image: bool) -> list[Any]:
        if photo is None:
            raise gr.Error('Choose a photo first.', print_exception=False)
        if not names:
            raise gr.Error('Tick at least one task.', print_exception=False)
        folder = Path(mkdtemp(dir=cache))
        try:
            picture, notes = read_upload(photo, max_pixels)
            asked = [inferencers[name] for name in names]
            has_pose = any(i.task.name == 'pose' for i in asked)
            jobs = make_jobs(
                picture,
                needs_boxes=has_pose,
                boxes=find_people if has_pose and not whole_image else None,
                whole_image=whole_image,
            )
            (found,) = infer(asked, jobs)
            results = dict(zip(names, found, strict=True))
            shown = [
                value
                for name, panel in panels.items()
                for value in panel.values(results.get(name), folder)
            ]
        except BaseException as err:
            shutil.rmtree(folder)
            if not isinstance(err, ValueError):
                raise
            raise gr.Error(str(err), print_exception=False) from err
        lines = [f'**{picture.path}**, {picture.size[1]} x {picture.size[0]} pixels']
        for result in results.values():
            if isinstance(result, PoseResult):
                lines.append(f'People: {len(result.boxes)} ({result.boxes_from})')
        tabs = gr.Tabs(selected=names[0])
        return ['\n\n'.join([*lines, *notes]), tabs, *shown]

    return predict
