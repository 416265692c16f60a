# Normals of Hi4D.
_base_ = 'hi4d_depth.py'
test_pipeline = _base_.test_pipeline
test_pipeline[1].fields = ['normal']
test_dataloader = dict(dataset=dict(fields=['normal'], pipeline=test_pipeline))
test_evaluator = dict(_delete_=True, type='sapiens2_mm.NormalMetric')
