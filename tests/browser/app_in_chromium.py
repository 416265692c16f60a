"""The web page in headless Chromium; not part of the normal tests.

apt-get install chromium; pip install playwright
python -m pytest tests/browser/app_in_chromium.py --basetemp=work_dirs/pages
    leaves pictures of the page in the base folder
"""

import io
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from tiny_app import tiny_inferencers

from sapiens2_mm.apis.app import serve

expect.set_options(timeout=60_000)
WIDE, PHONE = dict(width=1280, height=900), dict(width=390, height=844)


@pytest.fixture(scope='module')
def inferencers(repo_dir):
    return tiny_inferencers(repo_dir, 'pose', 'seg', 'pointmap')


@pytest.fixture(scope='module')
def address(inferencers):
    with serve(inferencers) as url:
        yield url


@pytest.fixture(scope='module')
def browser():
    found = shutil.which('chromium') or shutil.which('google-chrome')
    assert found, 'needs Chromium; apt-get install chromium'
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found,
            args=[
                '--no-sandbox',
                '--use-gl=swiftshader',
                '--enable-unsafe-swiftshader',
            ],
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Open the page as another user; only its own server is spoken to."""
    contexts, hosts = [], set()

    def open_page(**viewport):
        context = browser.new_context(viewport=viewport or WIDE, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on('request', lambda request: hosts.add(urlsplit(request.url).hostname))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert hosts - {None} == {'127.0.0.1'}  # blob: and data: have no host


@pytest.fixture(scope='module')
def photo(data_dir):
    return data_dir / 'synthetic_humans/rgb/000000.jpg'


def choose(page, path):
    page.locator('input[type=file]').first.set_input_files(path)
    expect(
        page.get_by_label('Remove Image').or_(page.get_by_label('Clear'))
    ).to_be_visible()


def predict(page):
    page.get_by_role('button', name='Predict').click()


def download(page, end, folder):
    with page.expect_download() as waiting:
        page.locator(f'a[download$="{end}"]:visible').first.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def wait_for_points(canvas):
    """Wait until the middle of the viewer shows anything but its empty ground."""
    end = time.monotonic() + 60
    while True:
        image = np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert('L'))
        height, width = image.shape
        middle = image[height // 4 : -height // 4, width // 4 : -width // 4]
        if np.ptp(middle) > 50:
            return
        assert time.monotonic() < end, 'the viewer stays empty'
        time.sleep(0.5)


@pytest.mark.parametrize('size', [WIDE, PHONE], ids=['wide', 'phone'])
def test_upload_click_and_result(open_page, inferencers, photo, tmp_path, size):
    page = open_page(**size)
    choose(page, photo)
    predict(page)
    expect(page.get_by_text('People: ')).to_be_visible()
    for name in ('Keypoints', '3-D points', 'Body parts'):
        page.get_by_role('tab', name=name).click()
        if name == '3-D points':
            wait_for_points(page.locator('canvas:visible'))
        page.wait_for_timeout(1000)  # pictures arrive
        page.screenshot(path=tmp_path / f'{name}.png', full_page=True)
    names = page.locator('.legend li:visible')
    expect(names).to_have_count(29)
    width = page.evaluate('document.documentElement.scrollWidth')
    assert width == size['width']  # nothing sticks out
    (expected,) = inferencers['seg'](photo)
    got = np.load(download(page, '_seg.npz', tmp_path))['labels']
    np.testing.assert_array_equal(got, expected.labels)


def test_hover_over_a_name_shows_its_part(open_page, photo, tmp_path):
    page = open_page()
    choose(page, photo)
    page.get_by_label('Keypoints').uncheck()
    page.get_by_label('3-D points').uncheck()
    predict(page)
    buttons = page.locator('button.legend-item:visible')
    expect(buttons.first).to_be_visible()
    expect(page.get_by_role('tab')).to_have_count(1)
    buttons.first.hover()
    expect(page.locator('img.mask.active')).to_have_count(1)
    expect(page.locator('img.mask.inactive')).to_have_count(buttons.count() - 1)
    page.screenshot(path=tmp_path / 'hover.png')


def test_bad_file_is_a_message(open_page, tmp_path):
    page = open_page()
    (tmp_path / 'text.jpg').write_text('text')
    choose(page, tmp_path / 'text.jpg')
    predict(page)
    message = page.get_by_text('cannot read image text.jpg')
    expect(message).to_be_visible()
    page.wait_for_timeout(1000)  # it glides in
    page.screenshot(path=tmp_path / 'bad.png')
    assert 'Traceback' not in page.content()
    expect(page.get_by_text('Results appear here.')).to_be_visible()


def test_two_users_at_once(open_page, inferencers, photo, tmp_path):
    paths = [tmp_path / '0' / 'a.png', tmp_path / '1' / 'b.png']
    for number, path in enumerate(paths):
        path.parent.mkdir()
        image = Image.open(photo)
        image.crop((40 * number, 0, image.width, image.height)).save(path)
    pages = [open_page(), open_page()]
    for page, path in zip(pages, paths, strict=True):
        choose(page, path)
    for page in pages:
        predict(page)
    for page, path in zip(pages, paths, strict=True):
        (expected,) = inferencers['pose'](path)
        expect(page.get_by_text(path.name).first).to_be_visible()
        file: Path = download(page, '_pose.npz', tmp_path)
        got = np.load(file)['keypoints']
        np.testing.assert_array_equal(got, expected.keypoints)
