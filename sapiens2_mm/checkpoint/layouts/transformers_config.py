"""``config.json`` of a converted model, for ``from_pretrained`` of transformers."""

from ..errors import CheckpointError
from .official import OfficialWeights

_CLASSES = {
    'pretrain': 'Sapiens2Model',
    'pose': 'Sapiens2ForPoseEstimation',
    'seg': 'Sapiens2ForSemanticSegmentation',
    'normal': 'Sapiens2ForNormalEstimation',
    'pointmap': 'Sapiens2ForPointmapEstimation',
    'matting': 'Sapiens2ForImageMatting',
}


def processor_config(task: str, image_size: tuple[int, int]) -> dict:
    """``preprocessor_config.json``, for ``AutoImageProcessor``."""
    return dict(
        image_processor_type='Sapiens2ImageProcessor',
        size=dict(height=image_size[0], width=image_size[1]),
        do_pad=task in ('normal', 'pointmap'),
    )


def transformers_config(
    weights: OfficialWeights, image_size: tuple[int, int], metainfo: dict
) -> dict:
    """All but the dtype.

    Args:
        weights: of the model.
        image_size: (height, width) in pixels.
        metainfo: of the data it was trained with, for the names of the channels.

    Raises:
        CheckpointError: if transformers cannot build the head.
    """
    sizes, state, start = weights.sizes(), weights.state, weights.prefix
    head_dims = sizes['embed_dims'] // sizes['num_heads']
    kv_heads = [
        state[f'{start}blocks.{n}.attn.wk.weight'].shape[0] // head_dims
        for n in range(sizes['num_layers'])
    ]
    config = dict(
        model_type='sapiens2',
        architectures=[_CLASSES[weights.task]],
        hidden_size=sizes['embed_dims'],
        intermediate_size=sizes['feedforward_channels'],
        num_hidden_layers=sizes['num_layers'],
        num_attention_heads=sizes['num_heads'],
        num_key_value_heads_per_layer=kv_heads,
        num_register_tokens=state[start + 'storage_tokens'].shape[1],
        patch_size=sizes['patch_size'],
        image_size=list(image_size),
        key_bias=True,
        use_gated_mlp=True,
        layerscale_value=1e-4,
        pos_embed_rescale=None,
        normalize_backbone_outputs=False,
    )
    if weights.task != 'pretrain':
        channels = state[f'decode_head.conv_{weights.task}.weight'].shape[0]
        names = metainfo.get('classes') or metainfo.get('keypoint_id2name') or {}
        names = list(names.values() if isinstance(names, dict) else names)
        if len(names) != channels:
            names = [f'LABEL_{index}' for index in range(channels)]
        labels = {str(index): str(name) for index, name in enumerate(names)}
        config['id2label'] = labels
        config['label2id'] = {name: int(index) for index, name in labels.items()}
        config['head_config'] = _head_config(weights)
    return config


def _head_config(weights: OfficialWeights) -> dict:
    refine = weights.layers('conv_layers')
    if weights.task in ('pose', 'seg'):
        # a transposed convolution: (in, out, kernel, kernel)
        deconv = weights.layers('deconv_layers')
        return dict(
            upsample_out_channels=[layer.shape[1] for layer in deconv],
            upsample_kernel_sizes=[layer.shape[2] for layer in deconv],
            conv_out_channels=[layer.shape[0] for layer in refine],
            conv_kernel_sizes=[layer.shape[2] for layer in refine],
        )
    upsample = weights.layers('upsample_blocks')
    config = dict(
        use_pixel_shuffle=True,
        upsample_out_channels=[layer.shape[0] // 4 for layer in upsample],
        upsample_kernel_sizes=[layer.shape[2] for layer in upsample],
        conv_out_channels=[layer.shape[0] for layer in refine],
        conv_kernel_sizes=[layer.shape[2] for layer in refine],
    )
    if weights.task == 'pointmap':
        scale, final = weights.layers('scale_conv_layers'), 'scale_final_layer'
        if len(weights.layers(final)) != 3:
            raise CheckpointError(
                'transformers knows scale heads with 2 hidden layers, this one has '
                f'{len(weights.layers(final)) - 1}'
            )
        config.update(
            scale_conv_out_channels=[layer.shape[0] for layer in scale],
            scale_conv_kernel_sizes=[layer.shape[2] for layer in scale],
            scale_final_input_size=weights.layers(final)[0].shape[1],
            scale_final_hidden_sizes=[w.shape[0] for w in weights.layers(final)[:-1]],
        )
    return config
