_base_ = ['sapiens-0.3b_backbone_1024x1024.py']
model = dict(arch='sapiens_2b')
