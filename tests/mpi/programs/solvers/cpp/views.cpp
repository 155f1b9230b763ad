// Puts a field for each kind of view. Element [i, j, k] is 100 i + 10 j + k + 1000 step, [i, j] 10 i + j, and [i] i;
// memory around the elements is -1.
#include <Eigen/Core>
#include <Kokkos_Core.hpp>
#include <list>
#include <mpidata.hpp>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "made_up_views.hpp"

template <>
struct mpidata::dtype_of<Kokkos::complex<float>> : mpidata::dtype_is<MPIDATA_COMPLEX64> {};

static int step;

static int at(int i) { return 1000 * step + i; }
static int at(int i, int j) { return at(10 * i + j); }
static int at(int i, int j, int k) { return at(100 * i + 10 * j + k); }

static void put_of_the_language(mpidata::simulation &s) {
    std::vector<double> row(6);
    float box[2][3][4];
    std::array<std::array<short, 3>, 2> nested{};
    std::vector<std::array<int, 3>> rows(4);
    for (int i = 0; i < 6; i++) row[static_cast<std::size_t>(i)] = at(i);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) box[i][j][k] = static_cast<float>(at(i, j, k));
    for (std::size_t i = 0; i < 4; i++)
        for (std::size_t j = 0; j < 3; j++) {
            rows[i][j] = at(static_cast<int>(i), static_cast<int>(j));
            if (i < 2) nested[i][j] = static_cast<short>(rows[i][j]);
        }
    const std::vector<double> const_row = row;
    const auto &const_box = box;
    s.put("vector", row);
    s.put("vector_const", const_row);
    s.put("vector_moved", std::vector<double>(row));
    s.put("array", nested);
    s.put("c_array", box);
    s.put("c_array_const", const_box);
    s.put("rows", rows);
    s.put("scalar", 1000.0 * step);
    s.put(std::string("scalar_int"), std::int64_t{1000} * step);
    s.put("span", Span<double>{row.data(), 6});
    s.put("span_const", Span<const double>{row.data(), 6});
#if __cplusplus >= 202002L
    s.put("span_std", std::span(row));
#else
    s.put("span_std", row);
#endif
    s.put("pointer", mpidata::array(&box[0][0][0], {2, 3, 4}));
    std::vector<double> reversed(row.rbegin(), row.rend());
    s.put("pointer_strided", mpidata::array(&reversed[5], {6}, {-8}));
    s.put_block("blocks", std::vector<std::array<int, 3>>{}, {0, 0}); // without rows
    s.put_block("blocks", std::vector<std::array<int, 3>>(rows.begin() + 2, rows.end()), {2, 0});
    const std::list<std::size_t> start{0, 0};
    s.put_block("blocks", std::vector<std::array<int, 3>>(rows.begin(), rows.begin() + 2), start);
    s.iput("lent", row);
    (void)s.step(step); // of all puts: see main
    s.wait_for(row);
    s.wait();
}

template <class View>
static void fill(const View &view) {
    for (int i = 0; i < view.extent(0); i++)
        for (int j = 0; j < view.extent(1); j++)
            for (int k = 0; k < view.extent(2); k++) view.at(i, j, k) = at(i, j, k);
}

static void put_made_up(mpidata::simulation &s) {
    static double memory[9][400];
    for (auto &block : memory)
        for (double &value : block) value = -1;
    double *of = memory[0];
    Mdspan<double, 3> right{memory[0], {2, 3, 4}, {12, 4, 1}}, left{memory[1], {2, 3, 4}, {1, 2, 6}}, wide{memory[2], {2, 3, 4}, {60, 12, 3}};
    Mdspan<double, 3> back{memory[3] + 11, {2, 3, 4}, {12, -4, -1}};
    KokkosView<double, 3> old_left{{memory[4], {2, 3, 4}, {1, 2, 6}}};
    KokkosView<double, 3, ManagedSpace, ManagedSpace> managed{{memory[5], {2, 3, 4}, {24, 8, 2}}};
    NewKokkosView<double, 3> new_right{{memory[6], {2, 3, 4}, {12, 4, 1}}};
    for (auto *view : {&right, &left, &wide, &back}) fill(*view);
    fill(old_left), fill(managed), fill(new_right);
    memory[7][0] = 1000 * step;
    s.put("mdspan_right", right);
    s.put("mdspan_left", left);
    s.put("mdspan_wide", wide);
    s.put("mdspan_back", back);
    s.put("mdspan_const", Mdspan<const double, 3>{of, {2, 3, 4}, {12, 4, 1}});
    s.put("mdspan_single", Single<double>{memory[7]});
    s.put("made_up_left", old_left);
    s.put("made_up_managed", managed);
    s.put("made_up_new", new_right);
    s.put_block("mdspan_blocks", Mdspan<double, 3>{memory[2], {1, 3, 4}, {60, 12, 3}}, {0, 0, 0});
    s.put_block("mdspan_blocks", Mdspan<double, 3>{memory[1] + 1, {1, 3, 4}, {1, 2, 6}}, {1, 0, 0});
    s.iput("lent_left", left);
    s.iput("lent_blocks", wide, {0, 0, 0});
}

template <class View>
static void fill_kokkos(const View &view) {
    for (int i = 0; i < view.extent_int(0); i++)
        for (int j = 0; j < view.extent_int(1); j++) view(i, j) = static_cast<typename View::value_type>(at(i, j));
}

static void put_of_kokkos(mpidata::simulation &s) {
    using Kokkos::ALL;
    Kokkos::View<double **, Kokkos::LayoutRight> right("right", 3, 4);
    Kokkos::View<float *[4], Kokkos::LayoutLeft> left("left", 3);
    Kokkos::View<long **, Kokkos::LayoutStride> strided("strided", Kokkos::LayoutStride(3, 10, 4, 2));
    Kokkos::View<Kokkos::complex<float> **> pairs("pairs", 3, 4);
    Kokkos::View<double ****, Kokkos::LayoutLeft> box("box", 5, 2, 3, 4);
    Kokkos::View<double> single("single");
    fill_kokkos(right), fill_kokkos(left), fill_kokkos(strided);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) pairs(i, j) = static_cast<float>(at(i, j));
    Kokkos::deep_copy(box, -1);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) box(1, i, j, k) = at(i, j, k);
    single() = 1000 * step;
    const Kokkos::View<const double **, Kokkos::LayoutRight> fixed = right;
    s.put("kokkos_right", right);
    s.put("kokkos_const", fixed);
    s.put("kokkos_left", left);
    s.put("kokkos_strided", strided);
    s.put("kokkos_pairs", pairs);
    s.put("kokkos_single", single);
    s.put("kokkos_slice", Kokkos::subview(box, 1, ALL(), ALL(), ALL()));
    Kokkos::View<double **, Kokkos::LayoutLeft> wide("wide", 7, 7);
    Kokkos::deep_copy(wide, -1);
    const auto inner = Kokkos::subview(wide, std::make_pair(2, 5), std::make_pair(1, 5));
    fill_kokkos(inner);
    s.put("kokkos_inner", inner);
    s.put("kokkos_column", Kokkos::subview(box, 1, 0, 0, ALL()));
}

template <class Matrix>
static void fill_eigen(Matrix &&matrix) {
    using Scalar = typename std::decay_t<Matrix>::Scalar;
    for (int i = 0; i < matrix.rows(); i++)
        for (int j = 0; j < matrix.cols(); j++) matrix(i, j) = static_cast<Scalar>(at(i, j));
}

static void put_of_eigen(mpidata::simulation &s) {
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::MatrixXd columns(3, 4), wide(5, 7), transposed(4, 3);
    RowMajor rows(3, 4), wide_rows(5, 7);
    Eigen::Matrix3f fixed;
    Eigen::VectorXf vector(6);
    Eigen::RowVectorXi row(6);
    Eigen::ArrayXXd array(3, 4);
    fill_eigen(columns), fill_eigen(rows), fill_eigen(fixed), fill_eigen(array);
    wide.setConstant(-1), wide_rows.setConstant(-1);
    fill_eigen(wide.block(1, 2, 3, 4)), fill_eigen(wide_rows.block(1, 2, 3, 4));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) transposed(j, i) = at(i, j);
    for (int i = 0; i < 6; i++) vector(i) = static_cast<float>(at(i)), row(i) = at(i);
    const Eigen::MatrixXd &fixed_columns = columns;
    s.put("eigen_columns", columns);
    s.put("eigen_const", fixed_columns);
    s.put("eigen_rows", rows);
    s.put("eigen_fixed", fixed);
    s.put("eigen_array", array);
    s.put("eigen_block", wide.block(1, 2, 3, 4));
    s.put("eigen_block_of_rows", wide_rows.block(1, 2, 3, 4));
    s.put("eigen_transposed", transposed.transpose());
    s.put("eigen_vector", vector);
    s.put("eigen_row_vector", row);
    s.put("eigen_row", columns.row(0));
    s.put("eigen_column", transposed.col(0));
    s.put("eigen_map", Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>(&wide_rows(1, 2), 3, 4, Eigen::OuterStride<>(7)));
    s.put("eigen_ref", Eigen::Ref<const Eigen::MatrixXd>(columns));
    Eigen::MatrixXd square(6, 6);
    square.setConstant(-1);
    for (int i = 0; i < 6; i++) square(i, i) = at(i);
    s.put("eigen_diagonal", square.diagonal());
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Kokkos::initialize(argc, argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        for (auto &s : job.simulations())
            for (step = 0; step < 3; step++) {
                put_made_up(s);
                put_of_kokkos(s);
                put_of_eigen(s);
                put_of_the_language(s); // and step
            }
    }
    Kokkos::finalize();
    return MPI_Finalize();
}
