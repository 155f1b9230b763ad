// A function object that streams a field: one block of each rank in each step. Loaded by any solver, see case/system/stream.
#include "addToRunTimeSelectionTable.H"
#include "fvMeshFunctionObject.H"
#include "labelIOList.H"
#include "volFields.H"

#include <mpidata_carried.h>

namespace Foam {
namespace functionObjects {

class mpidataStream : public fvMeshFunctionObject {
    const word field_;    // of OpenFOAM
    const word name_;     // of the job
    const label columns_; // of the whole mesh, of which each rank has some
    int64_t shape_[2], start_[2];

    static void must(int status) {
        if (status > MPIDATA_END) FatalErrorInFunction << mpidata_last_error() << exit(FatalError);
    }

    // The cells of this rank, which decomposePar has numbered as the whole mesh: some columns of all rows.
    void place() {
        const labelIOList cells(IOobject("cellProcAddressing", mesh_.facesInstance(), mesh_.meshSubDir, mesh_,
                                         IOobject::MUST_READ, IOobject::NO_WRITE, false));
        label here = 0;
        while (here < cells.size() && cells[here] / columns_ == cells[0] / columns_) here++;
        shape_[0] = here ? cells.size() / here : 0;
        shape_[1] = here;
        start_[0] = 0;
        start_[1] = here ? cells[0] % columns_ : 0;
        forAll(cells, i)
            if (cells[i] != (i / here) * columns_ + start_[1] + i % here)
                FatalErrorInFunction << "The cells of this rank are no columns of the mesh. Decompose it along x."
                                     << exit(FatalError);
    }

public:
    TypeName("mpidataStream");

    mpidataStream(const word& name, const Time& time, const dictionary& dict)
        : fvMeshFunctionObject(name, time, dict), field_(dict.get<word>("field")), name_(dict.get<word>("name")),
          columns_(dict.get<label>("columns")) {
        int64_t simulation;
        place();
        must(mpidata_attach());
        must(mpidata_next(&simulation));
    }

    bool execute() override {
        const volScalarField& field = mesh_.lookupObject<volScalarField>(field_);
        must(mpidata_put_block(name_.c_str(), field.cdata(), MPIDATA_FLOAT64, 2, shape_, start_));
        const int status = mpidata_step(time_.value());
        must(status);
        if (status == MPIDATA_END) time_.stopAt(Time::saNoWriteNow); // the job is stopping
        return true;
    }

    bool write() override { return true; }

    bool end() override {
        must(mpidata_finalize());
        return true;
    }
};

defineTypeNameAndDebug(mpidataStream, 0);
addToRunTimeSelectionTable(functionObject, mpidataStream, dictionary);

}
}
