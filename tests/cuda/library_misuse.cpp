#include "tests/cuda/library_misuse.h"

namespace bitale::test {

using namespace cuda;

Descriptors::~Descriptors() {
    for (const D d : all_) library_.cudnnBackendDestroyDescriptor(d);
}

int Descriptors::seen(int status) {
    if (status_ == 0) status_ = status;
    return status;
}

Descriptors::D Descriptors::make(int kind) {
    D d = nullptr;
    if (seen(library_.cudnnBackendCreateDescriptor(kind, &d)) == 0) all_.push_back(d);
    return d;
}

int Descriptors::set(D d, int attribute, int type, std::int64_t count, const void* values) {
    return seen(library_.cudnnBackendSetAttribute(d, attribute, type, count, values));
}
int Descriptors::set(D d, int attribute, const std::vector<std::int64_t>& values) {
    return set(d, attribute, dnn_int64, static_cast<std::int64_t>(values.size()), values.data());
}
int Descriptors::set(D d, int attribute, int type, int value) { return set(d, attribute, type, 1, &value); }
int Descriptors::set(D d, int attribute, D value) { return set(d, attribute, dnn_descriptor, 1, &value); }
int Descriptors::finalize(D d) { return seen(library_.cudnnBackendFinalize(d)); }
int Descriptors::get(D d, int attribute, int type, std::int64_t room, std::int64_t* count, void* values) {
    return seen(library_.cudnnBackendGetAttribute(d, attribute, type, room, count, values));
}

Descriptors::D Descriptors::tensor(const Tensor& t) {
    const D d = make(dnn_tensor);
    if (t.without != dnn_tensor_type) set(d, dnn_tensor_type, dnn_data_type, dnn_float32);
    if (t.without != dnn_tensor_shape) set(d, dnn_tensor_shape, t.shape);
    if (t.without != dnn_tensor_strides) set(d, dnn_tensor_strides, t.strides);
    if (t.without != dnn_tensor_id) set(d, dnn_tensor_id, {t.id});
    if (t.without != dnn_tensor_alignment) set(d, dnn_tensor_alignment, {t.alignment});
    if (t.is_virtual) set(d, dnn_tensor_virtual, dnn_boolean, 1, &t.is_virtual);
    if (t.finalized) finalize(d);
    return d;
}

Descriptors::D Descriptors::convolution(const Convolution& c) {
    const D d = make(dnn_convolution);
    const auto values = [&](DnnAttribute attribute, const std::vector<std::int64_t>& list) {
        if (c.without != attribute) set(d, attribute, list);
    };
    if (c.without != dnn_convolution_compute) set(d, dnn_convolution_compute, dnn_data_type, dnn_float32);
    if (c.without != dnn_convolution_mode_is) set(d, dnn_convolution_mode_is, dnn_convolution_mode, c.mode);
    values(dnn_convolution_axes, {c.axes});
    values(dnn_convolution_padding_before, c.pad);
    values(dnn_convolution_padding_after, c.pad);
    values(dnn_convolution_dilations, c.dilation);
    values(dnn_convolution_strides, c.stride);
    if (c.finalized) finalize(d);
    return d;
}

Descriptors::D Descriptors::operation(int kind, int first, D convolution, D filters, D image, D output,
                                      int without) {
    const D d = make(kind);
    const float scales[] = {1, 0};
    for (const int i : {0, 1})
        if (without != i) set(d, first + i, dnn_float, 1, scales + i);
    const D parts[] = {convolution, filters, image, output};
    for (const int i : {0, 1, 2, 3})
        if (without != 2 + i) set(d, first + 2 + i, parts[i]);
    finalize(d);
    return d;
}

Descriptors::D Descriptors::pointwise(int mode, int nan) {
    constexpr int nan_attribute = 2, nan_type = 10;
    const D d = make(dnn_pointwise);
    set(d, dnn_pointwise_mode_is, dnn_pointwise_mode, mode);
    set(d, dnn_pointwise_compute, dnn_data_type, dnn_float32);
    if (nan >= 0) set(d, nan_attribute, nan_type, nan);
    finalize(d);
    return d;
}

Descriptors::D Descriptors::pointwise_operation(D function, D x, D b, D y) {
    const D d = make(dnn_pointwise_operation);
    if (function) set(d, dnn_operation_pointwise, function);
    if (x) set(d, dnn_operation_x, x);
    if (b) set(d, dnn_operation_b, b);
    if (y) set(d, dnn_operation_y, y);
    finalize(d);
    return d;
}

Descriptors::D Descriptors::graph(const std::vector<D>& operations) {
    const D d = make(dnn_graph);
    set(d, dnn_graph_operations, dnn_descriptor, static_cast<std::int64_t>(operations.size()),
        operations.data());
    finalize(d);
    return d;
}

Descriptors::D Descriptors::device() {
    const std::string json = described_gpu();
    const D d = make(dnn_device);
    set(d, dnn_device_json, dnn_char, static_cast<std::int64_t>(json.size()), json.data());
    finalize(d);
    return d;
}

Descriptors::D Descriptors::heuristics(D graph, int mode, D device) {
    const D d = make(dnn_heuristics);
    if (graph) set(d, dnn_heuristics_graph, graph);
    set(d, dnn_heuristics_mode_is, dnn_heuristics_mode, mode);
    if (device) set(d, dnn_heuristics_device, device);
    finalize(d);
    return d;
}

std::vector<Descriptors::D> Descriptors::configs(D heuristics, std::int64_t most) {
    std::vector<D> list;
    for (std::int64_t i = 0; i < most; ++i) list.push_back(make(dnn_engine_config));
    std::int64_t count = 0;
    get(heuristics, dnn_heuristics_results, dnn_descriptor, most, &count, list.data());
    list.resize(static_cast<std::size_t>(count));
    return list;
}

Descriptors::D Descriptors::plan(D config, D device) {
    const D d = make(dnn_plan);
    if (device) set(d, dnn_plan_device, device);
    if (config) set(d, dnn_plan_config, config);
    finalize(d);
    return d;
}

Descriptors::D Descriptors::pack(const std::vector<std::int64_t>& ids, const std::vector<void*>& pointers) {
    const D d = make(dnn_variant_pack);
    void* workspace = nullptr;
    if (!ids.empty()) set(d, dnn_pack_ids, ids);
    if (!pointers.empty())
        set(d, dnn_pack_pointers, dnn_pointer, static_cast<std::int64_t>(pointers.size()), pointers.data());
    set(d, dnn_pack_workspace, dnn_pointer, 1, &workspace);
    finalize(d);
    return d;
}

int Descriptors::execute(DnnHandle* handle, D plan, D pack) {
    return seen(library_.cudnnBackendExecute(handle, plan, pack));
}

std::string described_gpu() {
    return R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"deviceName":"NVIDIA H100",)"
           R"("totalGlobalMem":85024112640,"maxGridSize":[2147483647,65535,65535],)"
           R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,)"
           R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"warpSize":32,)"
           R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
           R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
           R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
           R"("supportCoopLaunch":1})";
}

}  // namespace bitale::test
