import pytest

from sapiens2_mm.datasets.io.json_file import (
    Id,
    Number,
    check_record,
    check_records,
    load_json,
    load_names,
)


def test_load(tmp_path):
    path = tmp_path / '人 1.json'
    path.write_text('[1, {"a": null}]')
    assert load_json(str(path)) == [1, {'a': None}]
    path.write_text('[1, {"a"')
    with pytest.raises(ValueError, match=r'人 1\.json is not a readable JSON file'):
        load_json(str(path))
    with pytest.raises(FileNotFoundError, match=r"none\.json' does not exist"):
        load_json(str(tmp_path / 'none.json'))


@pytest.mark.parametrize(
    'record, message',
    [
        (3, 'f: image 1: expected an object, got 3'),
        ({}, 'f: image 1: id must be a number or a string, got nothing'),
        (dict(id=[0]), r'id must be a number or a string, got \[0\]'),
        (dict(id=0, width='9'), "f: image 1: width must be a number, got '9'"),
    ],
)
def test_first_wrong_record_is_named(record, message):
    good = dict(id='a', width=2.5, other=None)
    fields = dict(id=Id, width=Number)
    check_records([good, good], fields, 'f: image')
    check_record(good, fields, 'f')
    with pytest.raises(ValueError, match=message):
        check_records([good, record], fields, 'f: image')
    with pytest.raises(ValueError, match=r'f: image: expected a list, got \{\}'):
        check_records({}, fields, 'f: image')


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16', 'utf-32'])
def test_encodings_of_json(encoding, tmp_path):
    (tmp_path / 'a.json').write_text('{"name": "é人"}', encoding)
    assert load_json(str(tmp_path / 'a.json')) == {'name': 'é人'}


def test_json_of_endless_depth(tmp_path):
    (tmp_path / 'a.json').write_text('[' * 200_000)
    with pytest.raises(ValueError, match=r'a\.json is not a readable JSON file'):
        load_json(str(tmp_path / 'a.json'))


def test_lists_of_names(tmp_path):
    path = tmp_path / 'train.txt'
    path.write_bytes('\ufeffé 1\r\n\n  b\t\n'.encode())
    assert load_names(str(path)) == ['é 1', 'b']
    path.write_bytes('a\nb\né'.encode('latin-1'))
    with pytest.raises(ValueError, match=r'train\.txt, line 3: save it as UTF-8'):
        load_names(str(path))
