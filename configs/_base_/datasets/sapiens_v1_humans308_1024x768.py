# 308 keypoints as in the first Sapiens: all crops bilinear, all colors distorted.
_base_ = 'humans308_1024x768.py'
train_pipeline = _base_.train_pipeline
train_pipeline[5].enlarge = 'bilinear'
train_pipeline[6] = dict(type='sapiens2_mm.PosePhotometricDistortion')
test_pipeline = _base_.test_pipeline
test_pipeline[2].enlarge = 'bilinear'
_base_.tta_pipeline[1].transforms[2][0].enlarge = 'bilinear'
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
