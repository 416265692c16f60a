"""Vocabulary: the 29 part classes, body regions and surface layers."""

from __future__ import annotations

from enum import IntEnum

SEG_CLASSES = (
    'Background',
    'Apparel',
    'Eyeglass',
    'Face_Neck',
    'Hair',
    'Left_Foot',
    'Left_Hand',
    'Left_Lower_Arm',
    'Left_Lower_Leg',
    'Left_Shoe',
    'Left_Sock',
    'Left_Upper_Arm',
    'Left_Upper_Leg',
    'Lower_Clothing',
    'Right_Foot',
    'Right_Hand',
    'Right_Lower_Arm',
    'Right_Lower_Leg',
    'Right_Shoe',
    'Right_Sock',
    'Right_Upper_Arm',
    'Right_Upper_Leg',
    'Torso',
    'Upper_Clothing',
    'Lower_Lip',
    'Upper_Lip',
    'Lower_Teeth',
    'Upper_Teeth',
    'Tongue',
)
CLASS_ID = {name: i for i, name in enumerate(SEG_CLASSES)}

_LIMB_PARTS = ('Upper_Arm', 'Lower_Arm', 'Hand', 'Upper_Leg', 'Lower_Leg', 'Foot')
REGIONS = ('Torso', 'Face_Neck') + tuple(
    f'{side}_{part}' for side in ('Left', 'Right') for part in _LIMB_PARTS
)
REGION_ID = {name: i for i, name in enumerate(REGIONS)}

# First match wins; names are prefixes of the bones of the MakeHuman rig.
_BONE_PARTS = (
    ('pelvis', 'Torso'),
    ('upperleg', 'Upper_Leg'),
    ('lowerleg', 'Lower_Leg'),
    ('foot', 'Foot'),
    ('toe', 'Foot'),
    ('clavicle', 'Torso'),
    ('shoulder', 'Torso'),
    ('breast', 'Torso'),
    ('spine', 'Torso'),
    ('root', 'Torso'),
    ('upperarm', 'Upper_Arm'),
    ('lowerarm', 'Lower_Arm'),
    ('wrist', 'Hand'),
    ('finger', 'Hand'),
    ('metacarpal', 'Hand'),
)


class Layer(IntEnum):
    """Surface layer of a mesh face; decides how its pixels are painted."""

    SKIN = 0
    CLOTH = 1
    SKIRT = 2
    HAIR = 3
    EYE_LEFT = 4
    EYE_RIGHT = 5
    TEETH_UPPER = 6
    TEETH_LOWER = 7
    TONGUE = 8
    GLASSES = 9
    CAP = 10


def bone_region(bone: str) -> str:
    """Region of :data:`REGIONS` that a MakeHuman rig bone belongs to.

    Bones without an entry (neck, head, jaw, eyes, mouth, tongue) are face and
    neck. The side is the subject's own.
    """
    for prefix, part in _BONE_PARTS:
        if bone.startswith(prefix):
            if part == 'Torso':
                return part
            side = 'Left' if bone.endswith('.L') else 'Right'
            return f'{side}_{part}'
    return 'Face_Neck'
