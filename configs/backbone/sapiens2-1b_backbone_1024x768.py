_base_ = ['sapiens2-0.4b_backbone_1024x768.py']
model = dict(arch='sapiens2_1b')
