// DLPack: tensors in and out without a copy, and each tensor that does not fit is refused and stays its
// owner's.
#include "bitale/dlpack.h"

#include <cstring>
#include <functional>
#include <thread>

#include "graph/ir/dlpack_abi.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool copies = true;  // what lies behind a tensor cannot be read under AddressSanitizer
#else
constexpr bool copies = false;
#endif

// A library of its own that lends a tensor [2, 3] of float32 0 ... 5, and counts what is given back.
template <class Managed>
struct Lender {
    Lender() {
        for (int i = 0; i < 6; ++i) values[i] = static_cast<float>(i);
        DLTensor& t = tensor.dl_tensor;
        t.data = values;
        t.device = {dlpack::cpu, 0};
        t.ndim = 2;
        t.dtype = {dlpack::floating, 32, 1};
        t.shape = shape;
        t.strides = strides;
        tensor.manager_ctx = this;
        tensor.deleter = [](Managed* self) { ++static_cast<Lender*>(self->manager_ctx)->given_back; };
        if constexpr (requires { tensor.version; }) tensor.version = {1, 0};
    }
    alignas(4096) float values[1024] = {};  // from the beginning of a page
    std::int64_t shape[3] = {2, 3, 1}, strides[3] = {3, 1, 1};
    Managed tensor{};
    int given_back = 0;
};
using Old = Lender<DLManagedTensor>;
using New = Lender<DLManagedTensorVersioned>;

const Array expected = {{0.F, 1.F, 2.F}, {3.F, 4.F, 5.F}};

template <class L>
void lend_and_give_back() {
    L lender;
    {
        Array copy;
        {
            const Array a = from_dlpack(&lender.tensor);
            CHECK(same(a, expected));
            CHECK((a.data() == lender.values) == !copies);
            copy = a;
        }
        CHECK(lender.given_back == copies);
        CHECK(same(copy, expected));
        // Who writes, writes a copy: what is lent stays as it is.
        static_cast<float*>(copy.mutable_data())[0] = 7;
        CHECK(lender.values[0] == 0);
        CHECK(copy.at(0) == 7);
    }
    CHECK(lender.given_back == 1);
}

}  // namespace

TEST_CASE("a tensor is used without a copy and given back once") {
    lend_and_give_back<Old>();
    lend_and_give_back<New>();
}

TEST_CASE("a tensor may end in another thread, and may have no deleter") {
    New lender;
    Array a = from_dlpack(&lender.tensor);
    std::thread([array = std::move(a)] { CHECK(array.size() == 6); }).join();
    CHECK(lender.given_back == 1);
    Old without;
    without.tensor.deleter = nullptr;
    CHECK(same(from_dlpack(&without.tensor), expected));
}

TEST_CASE("every element type goes in and out") {
    for (int i = 0; i < dtype_count; ++i) {
        const auto dtype = static_cast<DType>(i);
        INFO(name_of(dtype));
        const Array values = Array({{0, 1, 1}, {1, 0, 1}}).as(dtype);
        DLManagedTensorVersioned* out = to_dlpack(values);
        CHECK(out->dl_tensor.dtype.bits == bits_of(dtype));
        CHECK(out->dl_tensor.data == values.data());
        const Array back = from_dlpack(out);
        CHECK(back.dtype() == dtype);
        CHECK(same(back, values));
        DLManagedTensor* old = to_dlpack_unversioned(values);
        CHECK(old->dl_tensor.data != values.data());  // it cannot say that it is read-only
        CHECK(same(from_dlpack(old), values));
    }
}

TEST_CASE("what is handed out is read-only unless it is the only one, and outlives the array") {
    Array a = {{1.F, 2.F}, {3.F, 4.F}};
    const void* data = a.data();
    DLManagedTensorVersioned* shared = to_dlpack(a);
    CHECK(shared->flags == dlpack::read_only);
    CHECK(shared->version.major == 1);
    CHECK(shared->dl_tensor.device.device_type == dlpack::cpu);
    CHECK(shared->dl_tensor.strides[0] == 2);
    CHECK(shared->dl_tensor.strides[1] == 1);
    shared->deleter(shared);
    DLManagedTensorVersioned* own = to_dlpack(std::move(a));
    CHECK(own->flags == 0);
    CHECK(own->dl_tensor.data == data);
    CHECK(static_cast<const float*>(own->dl_tensor.data)[3] == 4);
    own->deleter(own);
    DLManagedTensor* number = to_dlpack_unversioned(Array(5));
    CHECK(number->dl_tensor.ndim == 0);
    CHECK(*static_cast<const int*>(number->dl_tensor.data) == 5);
    number->deleter(number);
    // What was lent to us is not ours to be written by a third one.
    New lender;
    DLManagedTensorVersioned* passed_on = to_dlpack(from_dlpack(&lender.tensor));
    CHECK(passed_on->flags == (copies ? 0 : dlpack::read_only));
    passed_on->deleter(passed_on);
    CHECK(lender.given_back == 1);
}

TEST_CASE("offsets, strides of axes of one, and empty tensors are read as they are meant") {
    New lender;
    DLTensor& t = lender.tensor.dl_tensor;
    t.byte_offset = 64;
    for (int i = 16; i < 22; ++i) lender.values[i] = static_cast<float>(i - 16);
    CHECK(same(from_dlpack(&lender.tensor), expected));
    t.byte_offset = 4;  // not where a vector may begin: a copy
    const Array copied = from_dlpack(&lender.tensor);
    CHECK(lender.given_back == 2);
    CHECK(copied.at(0) == 1);
    CHECK_THROWS_WITH(from_dlpack(&lender.tensor, {.copy_if_needed = false}),
                      ContainsSubstring("must be copied"));
    CHECK(lender.given_back == 2);
    t.byte_offset = 4096 - 24;  // ends where the page does
    CHECK(from_dlpack(&lender.tensor).data() != lender.values + 1018);
    CHECK(lender.given_back == 3);
    t.byte_offset = 0;
    t.ndim = 3;
    lender.strides[2] = 12345;
    CHECK(from_dlpack(&lender.tensor).shape() == Dims{2, 3, 1});
    t.strides = nullptr;
    CHECK(from_dlpack(&lender.tensor).shape() == Dims{2, 3, 1});
    t.shape[1] = 0;
    t.data = nullptr;
    CHECK(from_dlpack(&lender.tensor).shape() == Dims{2, 0, 1});
    CHECK(lender.given_back == 6);
}

TEST_CASE("what does not fit is refused, and still belongs to its owner") {
    const struct {
        std::function<void(DLTensor&)> change;
        const char* message;
    } cases[] = {
        {[](DLTensor& t) { t.device.device_type = dlpack::cuda; }, "is on kDLCUDA (2)"},
        {[](DLTensor& t) { t.device.device_type = 77; }, "device type (77)"},
        {[](DLTensor& t) { t.dtype.lanes = 4; }, "4 lanes"},
        {[](DLTensor& t) { t.dtype.bits = 4; }, "4 bits"},
        {[](DLTensor& t) { t.dtype.code = dlpack::complex, t.dtype.bits = 64; }, "complex"},
        {[](DLTensor& t) { t.dtype.code = 200; }, "code 200"},
        {[](DLTensor& t) { t.strides[0] = 1, t.strides[1] = 2; },
         "strides are [1, 2]; hand over a contiguous"},
        {[](DLTensor& t) { t.strides[1] = -1; }, "not dense"},
        {[](DLTensor& t) { t.strides[0] = 4; }, "not dense"},
        {[](DLTensor& t) { t.ndim = -1; }, "-1 axes"},
        {[](DLTensor& t) { t.ndim = 1 << 30; }, "axes"},
        {[](DLTensor& t) { t.shape = nullptr; }, "no shape"},
        {[](DLTensor& t) { t.shape[0] = -2; }, "cannot have the shape [-2, 3]"},
        {[](DLTensor& t) { t.shape[0] = std::int64_t{1} << 62; }, "too many elements"},
        {[](DLTensor& t) { t.shape[0] = (std::int64_t{1} << 61) / 3; }, "more bytes than can be counted"},
        {[](DLTensor& t) { t.data = nullptr; }, "null"},
        {[](DLTensor& t) { t.byte_offset = ~std::uint64_t{63}; }, "out of the address space"},
    };
    for (const auto& c : cases) {
        INFO(c.message);
        Old old;
        c.change(old.tensor.dl_tensor);
        CHECK_THROWS_WITH(from_dlpack(&old.tensor), ContainsSubstring(c.message));
        New versioned;
        c.change(versioned.tensor.dl_tensor);
        CHECK_THROWS_AS(from_dlpack(&versioned.tensor), Error);
        CHECK(old.given_back + versioned.given_back == 0);
    }
    New later;
    later.tensor.version = {2, 0};
    CHECK_THROWS_WITH(from_dlpack(&later.tensor), ContainsSubstring("version 2.0"));
    CHECK(later.given_back == 0);
    CHECK_THROWS_AS(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), Error);
    New flags;
    flags.tensor.dl_tensor.dtype = {dlpack::boolean, 8, 1};
    flags.values[0] = 5;
    CHECK_THROWS_WITH(from_dlpack(&flags.tensor), ContainsSubstring("neither 0 nor 1"));
    CHECK(flags.given_back == 0);
}
