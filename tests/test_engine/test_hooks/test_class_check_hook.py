from types import SimpleNamespace

import pytest

from sapiens2_mm.registry import HOOKS


def runner(num_classes, train, val=None, wrapped=False):
    head = SimpleNamespace(num_classes=num_classes, ignore_index=255)
    model = SimpleNamespace(decode_head=head)

    def loader(classes):
        meta = {} if classes is None else dict(classes=classes)
        return SimpleNamespace(dataset=SimpleNamespace(metainfo=meta))

    return SimpleNamespace(
        model=SimpleNamespace(module=model) if wrapped else model,
        train_dataloader=loader(train),
        val_dataloader=loader(val),
        test_dataloader=loader(val),
        val_loop=None if val is None else object(),
    )


@pytest.fixture
def hook():
    return HOOKS.build(dict(type='sapiens2_mm.ClassCheckHook'))


def test_equal_numbers_pass(hook):
    for wrapped in (False, True):
        hook.before_train(runner(2, 'ab', 'ab', wrapped))
    hook.before_test(runner(2, 'ab', 'ab'))
    hook.before_train(runner(2, None))
    hook.before_train(runner(None, 'abc'))


@pytest.mark.parametrize('wrapped', [False, True])
def test_other_numbers_stop(hook, wrapped):
    message = '3 classes, the head num_classes=2.*set model.decode_head.num_classes'
    with pytest.raises(ValueError, match=message):
        hook.before_train(runner(2, 'abc', wrapped=wrapped))
    with pytest.raises(ValueError, match=message):
        hook.before_train(runner(2, 'ab', 'abc', wrapped))
    with pytest.raises(ValueError, match=message):
        hook.before_test(runner(2, 'ab', 'abc', wrapped))


def test_ignored_label_of_data_and_head(hook):
    run = runner(2, 'ab')
    dataset = run.train_dataloader.dataset
    dataset.ignore_index = 255
    hook.before_train(run)
    dataset.ignore_index = 254
    message = 'data set ignores label 254, the head 255; set ignore_index of both'
    with pytest.raises(ValueError, match=message):
        hook.before_train(run)
    parts = [SimpleNamespace(dataset=dataset), SimpleNamespace()]
    joined = SimpleNamespace(metainfo=dataset.metainfo, datasets=parts)
    run.train_dataloader.dataset = joined
    with pytest.raises(ValueError, match=message):
        hook.before_train(run)
