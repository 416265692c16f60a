# The pretrained 4K backbone alone: the window tokenizer gives 64x48 at this size too.
_base_ = ['sapiens2-1b_backbone_1024x768.py']
model = dict(img_size=(4096, 3072), use_tokenizer=True)
