#include "retrieval/code/operator_table.hpp"

#include <algorithm>
#include <map>

namespace kernelmill {

namespace {

// name; other names; parameters of the layer; parameters of the function after its first tensor.
// `!` before a parameter: it counts; `=` the value that is left out.
struct table_row {
  std::string_view name, others, layer, function;
};

#define KM_CONV_LAYER                                                                              \
  "in_channels out_channels !kernel_size !stride=1 !padding=0 !dilation=1 !groups=1 bias"
#define KM_CONV_CALL "weight bias !stride=1 !padding=0 !dilation=1 !groups=1"
#define KM_DECONV_LAYER                                                                            \
  "in_channels out_channels !kernel_size !stride=1 !padding=0 !output_padding=0 !groups=1 bias "   \
  "!dilation=1"
#define KM_DECONV_CALL "weight bias !stride=1 !padding=0 !output_padding=0 !groups=1 !dilation=1"
#define KM_MAX_POOL "!kernel_size !stride !padding=0 !dilation=1 return_indices !ceil_mode=0"
#define KM_AVG_POOL                                                                                \
  "!kernel_size !stride !padding=0 !ceil_mode=0 !count_include_pad=1 !divisor_override=none"
#define KM_RNN "input_size hidden_size !num_layers=1 bias batch_first dropout !bidirectional=0"
#define KM_REDUCE "!dim=none keepdim"

constexpr table_row rows[] = {
    {"conv1d", "", KM_CONV_LAYER, KM_CONV_CALL},
    {"conv2d", "", KM_CONV_LAYER, KM_CONV_CALL},
    {"conv3d", "", KM_CONV_LAYER, KM_CONV_CALL},
    {"conv_transpose1d", "", KM_DECONV_LAYER, KM_DECONV_CALL},
    {"conv_transpose2d", "", KM_DECONV_LAYER, KM_DECONV_CALL},
    {"conv_transpose3d", "", KM_DECONV_LAYER, KM_DECONV_CALL},
    {"linear", "lazy_linear", "in_features out_features bias", "weight bias"},
    {"max_pool1d", "", KM_MAX_POOL, KM_MAX_POOL},
    {"max_pool2d", "", KM_MAX_POOL, KM_MAX_POOL},
    {"max_pool3d", "", KM_MAX_POOL, KM_MAX_POOL},
    {"avg_pool1d", "", KM_AVG_POOL, KM_AVG_POOL},
    {"avg_pool2d", "", KM_AVG_POOL, KM_AVG_POOL},
    {"avg_pool3d", "", KM_AVG_POOL, KM_AVG_POOL},
    {"adaptive_avg_pool1d", "", "!output_size", "!output_size"},
    {"adaptive_avg_pool2d", "", "!output_size", "!output_size"},
    {"adaptive_avg_pool3d", "", "!output_size", "!output_size"},
    {"adaptive_max_pool1d", "", "!output_size", "!output_size"},
    {"adaptive_max_pool2d", "", "!output_size", "!output_size"},
    {"adaptive_max_pool3d", "", "!output_size", "!output_size"},
    {"batch_norm", "batch_norm1d batch_norm2d batch_norm3d sync_batch_norm", "num_features", ""},
    {"instance_norm", "instance_norm1d instance_norm2d instance_norm3d", "num_features", ""},
    {"layer_norm", "", "normalized_shape", "normalized_shape weight bias"},
    {"rms_norm", "", "normalized_shape", "normalized_shape weight"},
    {"group_norm", "", "!num_groups num_channels", "!num_groups weight bias"},
    {"local_response_norm", "", "!size", "!size"},
    {"normalize", "", "", "!p=2 !dim=1"},
    {"softmax", "softmax2d", "!dim", "!dim"},
    {"log_softmax", "", "!dim", "!dim"},
    {"softmin", "", "!dim", "!dim"},
    {"glu", "", "!dim=-1", "!dim=-1"},
    {"gelu", "", "!approximate=none", "!approximate=none"},
    {"silu", "swish", "inplace", "inplace"},
    {"clamp", "clip clamp_min clamp_max", "", "min max"},
    {"dropout", "dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout", "p", "p"},
    {"sum", "nansum", "", KM_REDUCE},
    {"mean", "nanmean", "", KM_REDUCE},
    {"prod", "", "", KM_REDUCE},
    {"max", "amax", "", KM_REDUCE},
    {"min", "amin", "", KM_REDUCE},
    {"any", "", "", KM_REDUCE},
    {"all", "", "", KM_REDUCE},
    {"argmax", "", "", KM_REDUCE},
    {"argmin", "", "", KM_REDUCE},
    {"logsumexp", "", "", KM_REDUCE},
    {"median", "nanmedian", "", KM_REDUCE},
    {"var", "", "", KM_REDUCE},
    {"std", "", "", KM_REDUCE},
    {"cumsum", "", "", "!dim"},
    {"cumprod", "", "", "!dim"},
    {"cummax", "", "", "!dim"},
    {"cummin", "", "", "!dim"},
    {"norm", "vector_norm matrix_norm", "", "!p=2 !dim=none keepdim"},
    {"sort", "argsort", "", "!dim=-1 !descending=0"},
    {"topk", "", "", "k !dim=-1 !largest=1"},
    {"flip", "", "", "!dim"},
    {"gather", "take_along_dim", "", "!dim"},
    {"scatter", "", "", "!dim"},
    {"scatter_add", "", "", "!dim"},
    {"index_select", "", "", "!dim"},
    {"cat", "concat concatenate", "", "!dim=0"},
    {"stack", "", "", "!dim=0"},
    {"pad",
     "zero_pad2d reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d "
     "constant_pad1d constant_pad2d constant_pad3d",
     "!padding", "!padding !mode=constant"},
    {"interpolate", "upsample upsampling_nearest2d upsampling_bilinear2d",
     "size !scale_factor=none !mode=nearest", "size !scale_factor=none !mode=nearest"},
    {"pixel_shuffle", "", "!factor", "!factor"},
    {"pixel_unshuffle", "", "!factor", "!factor"},
    {"unfold", "", "!kernel_size !dilation=1 !padding=0 !stride=1", ""},
    {"mse", "", "size_average reduce !reduction=mean",
     "target size_average reduce !reduction=mean"},
    {"l1", "", "size_average reduce !reduction=mean", "target size_average reduce !reduction=mean"},
    {"smooth_l1", "", "size_average reduce !reduction=mean",
     "target size_average reduce !reduction=mean"},
    {"huber", "", "!reduction=mean", "target !reduction=mean"},
    {"kl_div", "", "size_average reduce !reduction=mean",
     "target size_average reduce !reduction=mean"},
    {"cross_entropy", "", "weight size_average ignore_index reduce !reduction=mean",
     "target weight size_average ignore_index reduce !reduction=mean"},
    {"nll", "", "weight size_average ignore_index reduce !reduction=mean",
     "target weight size_average ignore_index reduce !reduction=mean"},
    {"binary_cross_entropy", "bce", "weight size_average reduce !reduction=mean",
     "target weight size_average reduce !reduction=mean"},
    {"binary_cross_entropy_with_logits", "bce_with_logits",
     "weight size_average reduce !reduction=mean",
     "target weight size_average reduce !reduction=mean"},
    {"lstm", "", KM_RNN, ""},
    {"gru", "", KM_RNN, ""},
    {"rnn", "", "input_size hidden_size !num_layers=1 !nonlinearity=tanh", ""},
    {"lstm_cell", "", "input_size hidden_size", ""},
    {"gru_cell", "", "input_size hidden_size", ""},
    {"embedding", "embedding_bag", "num_embeddings embedding_dim", "weight"},
    {"multi_head_attention", "multihead_attention multi_head_attention_forward",
     "embed_dim !num_heads", ""},
    {"transformer_encoder_layer", "", "d_model !nhead dim_feedforward dropout !activation=relu",
     ""},
    {"transformer_decoder_layer", "", "d_model !nhead dim_feedforward dropout !activation=relu",
     ""},
    {"attention", "scaled_dot_product_attention", "", "key value attn_mask dropout_p !is_causal=0"},
    {"transpose", "t mt permute swapaxes swapdims movedim adjoint", "", ""},
    {"matmul", "mm bmm mv dot inner vdot", "", ""},
    {"tril", "", "", "!diagonal=0"},
    {"triu", "", "", "!diagonal=0"},
    {"roll", "", "", "shifts !dims=none"},
    // Plain names that have others.
    {"add", "", "", ""},
    {"sub", "subtract", "", ""},
    {"mul", "multiply", "", ""},
    {"div", "divide true_divide", "", ""},
    {"neg", "negative", "", ""},
    {"abs", "absolute", "", ""},
    {"leaky_relu", "", "", ""},
    {"log_sigmoid", "", "", ""},
    {"cosine_similarity", "", "!dim=1", "other !dim=1"},
    {"triplet_margin", "", "", ""},
    {"masked_fill", "", "", ""},
    {"compare", "eq ne lt le gt ge equal greater less greater_equal less_equal isnan isinf", "",
     ""},
    {"reshape", "view flatten ravel view_as reshape_as unflatten", "", ""},
    {"squeeze", "unsqueeze", "", ""},
    {"chunk", "split tensor_split unbind narrow select", "", ""},
    {"copy",
     "contiguous clone detach to cuda cpu float half double long int bool bfloat16 type "
     "type_as requires_grad_ data identity",
     "", ""},
    {"expand", "expand_as broadcast_to", "", ""},
    {"index", "", "", ""}};

constexpr std::string_view arranging[] = {"chunk", "copy", "expand", "index", "reshape", "squeeze"};

constexpr std::string_view makers[] = {
    "Tensor",     "arange",    "as_tensor", "empty",     "empty_like", "eye",
    "from_numpy", "full",      "full_like", "linspace",  "logspace",   "normal",
    "ones",       "ones_like", "rand",      "rand_like", "randint",    "randn",
    "randn_like", "randperm",  "tensor",    "zeros",     "zeros_like"};

/// "LeakyReLU", "leaky_relu" and "leaky_relu_" have one key, and so have "MSELoss" and "mse_loss".
std::string key_of(std::string_view name) {
  std::string result;
  for (char c : name)
    if (c != '_') result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (result.size() > 4 && result.ends_with("loss")) result.resize(result.size() - 4);
  return result;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    auto end = std::min(text.find(' '), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::vector<operator_parameter> parameters_of(std::string_view text) {
  std::vector<operator_parameter> result;
  for (auto word : words_of(text)) {
    operator_parameter x;
    x.counts = word.starts_with('!');
    if (x.counts) word.remove_prefix(1);
    auto equals = word.find('=');
    x.name = word.substr(0, equals);
    if (equals != word.npos) x.neutral = word.substr(equals + 1);
    result.push_back(x);
  }
  return result;
}

std::map<std::string, known_operator> make_table() {
  std::map<std::string, known_operator> result;
  for (const auto& row : rows) {
    known_operator x{row.name, parameters_of(row.layer), parameters_of(row.function)};
    result[key_of(row.name)] = x;
    for (auto other : words_of(row.others)) result[key_of(other)] = x;
  }
  return result;
}

} // namespace

const known_operator* find_operator(std::string_view name) {
  static const auto table = make_table();
  auto found = table.find(key_of(name));
  return found == table.end() ? nullptr : &found->second;
}

std::string plain_operator_name(std::string_view name) {
  return key_of(name);
}

bool only_arranges(std::string_view name) {
  return std::find(std::begin(arranging), std::end(arranging), name) != std::end(arranging);
}

bool makes_tensor(std::string_view name) {
  return std::binary_search(std::begin(makers), std::end(makers), name);
}

} // namespace kernelmill
