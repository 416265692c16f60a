from types import SimpleNamespace

import pytest
from mmengine.logging import MessageHub, MMLogger

from sapiens2_mm.engine.hooks import TeacherUpdateHook


class Model:
    num_steps = 5

    def after_step(self) -> None:
        self.num_steps += 1

    def restart(self) -> None:
        self.num_steps = 0


def make_runner(name: str, updates: bool = True) -> SimpleNamespace:
    return SimpleNamespace(
        model=Model(),
        iter=0,
        optim_wrapper=SimpleNamespace(should_update=lambda: updates),
        message_hub=MessageHub(name),
        logger=MMLogger.get_current_instance(),
    )


def watch(runner, hook, values: list[tuple[float, float]]) -> None:
    for information, distance in values:
        hub = runner.message_hub
        hub.update_scalar('train/teacher_mutual_information', information)
        hub.update_scalar('train/teacher_kl_uniform', distance)
        hook.after_train_iter(runner, 0)


@pytest.mark.parametrize(
    ('distance', 'how'),
    [(0.0003, 'they are uniform'), (6.9, 'all images get the same one')],
)
def test_a_dead_contrast_is_told_once(log, distance, how):
    runner = make_runner(f'dead{distance}')
    hook = TeacherUpdateHook(min_information=0.05, patience=3)
    # alive in between: the count begins anew
    watch(runner, hook, [(0.01, distance)] * 2 + [(0.3, 1.0)] + [(0.01, distance)] * 2)
    assert 'DEAD' not in log.text
    watch(runner, hook, [(0.01, distance)])
    assert 'DEAD: for 3 iterations the targets of the teacher' in log.text
    assert f'{how} (teacher_mutual_information 0.0100, teacher_kl' in log.text
    watch(runner, hook, [(0.3, 1.0)] + [(0.01, distance)] * 9)
    assert log.text.count('DEAD') == 1


def test_reconstruction_alone_has_no_contrast_to_watch(log):
    runner = make_runner('alone')
    hook = TeacherUpdateHook(patience=1)
    hook.after_train_iter(runner, 0)
    assert runner.model.num_steps == 6
    assert 'DEAD' not in log.text


@pytest.mark.parametrize(('iteration', 'steps'), [(0, 0), (3, 5)])
def test_only_a_resumed_run_keeps_its_steps(iteration, steps):
    runner = make_runner('steps')
    runner.iter = iteration
    TeacherUpdateHook().before_train(runner)
    assert runner.model.num_steps == steps


def test_no_step_no_move():
    runner = make_runner('accumulation', updates=False)
    TeacherUpdateHook().after_train_iter(runner, 0)
    assert runner.model.num_steps == 5
