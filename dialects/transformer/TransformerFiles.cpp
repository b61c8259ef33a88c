// Which tensors in files hold a parameter: the attribute's text, and its rules.
#include "dialects/transformer/FileForms.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace meshwork;
using namespace meshwork::transformer;

//===-- FileAttr ------------------------------------------------------------//

/// " at [0, 8]", if the keyword is there.
static ParseResult parseNumbers(AsmParser &parser, StringRef keyword,
                                SmallVectorImpl<int64_t> &numbers) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(numbers.emplace_back());
  });
}

static void printNumbers(AsmPrinter &printer, StringRef keyword,
                         ArrayRef<int64_t> numbers) {
  if (numbers.empty())
    return;
  printer << " " << keyword << " [";
  llvm::interleaveComma(numbers, printer.getStream());
  printer << "]";
}

template <typename Number>
static ParseResult parseNumber(AsmParser &parser, StringRef keyword,
                               Number &number) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseInteger(number);
}

Attribute FileAttr::parse(AsmParser &parser, Type) {
  std::string pattern;
  int32_t along = -1;
  int64_t first = 0;
  SmallVector<int64_t> begin, extent, shape, offset;
  if (parser.parseLess() || parser.parseString(&pattern) ||
      parseNumber(parser, "along", along) ||
      parseNumber(parser, "from", first) || parseNumbers(parser, "at", begin) ||
      parseNumbers(parser, "size", extent) ||
      parseNumbers(parser, "shape", shape) ||
      parseNumbers(parser, "offset", offset) || parser.parseGreater())
    return {};
  return get(parser.getContext(), parser.getBuilder().getStringAttr(pattern),
             along, first, begin, extent, shape, offset);
}

void FileAttr::print(AsmPrinter &printer) const {
  printer << "<" << getPattern();
  if (getAlong() >= 0)
    printer << " along " << getAlong();
  if (getFirst() != 0)
    printer << " from " << getFirst();
  printNumbers(printer, "at", getBegin());
  printNumbers(printer, "size", getExtent());
  printNumbers(printer, "shape", getShape());
  printNumbers(printer, "offset", getOffset());
  printer << ">";
}

//===-- forms ---------------------------------------------------------------//

static std::vector<int64_t> filled(ArrayRef<int64_t> given,
                                   std::vector<int64_t> otherwise) {
  return given.empty() ? std::move(otherwise) : given.vec();
}

static plan::FilePieceT pieceOf(FileAttr file, ArrayRef<int64_t> whole) {
  plan::FilePieceT piece;
  piece.pattern = file.getPattern().str();
  piece.counted = file.getAlong();
  piece.first = file.getFirst();
  piece.begin = filled(file.getBegin(), std::vector<int64_t>(whole.size(), 0));
  piece.extent = filled(file.getExtent(), whole.vec());
  std::vector<int64_t> part = piece.extent;
  if (piece.counted >= 0 && piece.counted < static_cast<int64_t>(part.size()))
    part.erase(part.begin() + piece.counted);
  piece.shape = filled(file.getShape(), part);
  piece.offset = file.getOffset().vec();
  return piece;
}

plan::FileForm transformer::formOf(ArrayAttr files, ArrayRef<int64_t> whole) {
  plan::FileForm form;
  for (auto file : files.getAsRange<FileAttr>())
    form.push_back(pieceOf(file, whole));
  return form;
}

std::vector<plan::FileForm> transformer::formsOf(ParameterOp parameter) {
  ArrayRef<int64_t> whole = parameter.getWholeShape();
  std::vector<plan::FileForm> forms = {
      parameter.getFilesAttr()
          ? formOf(parameter.getFilesAttr(), whole)
          : plan::wholeForm(parameter.getName().str(), whole.vec(),
                            parameter.getShapeInFile().vec())};
  if (ArrayAttr others = parameter.getOtherFilesAttr())
    for (auto other : others.getAsRange<ArrayAttr>())
      forms.push_back(formOf(other, whole));
  return forms;
}

static bool isMatrix(const plan::FilePieceT &piece) {
  return piece.shape.size() >= 2;
}

bool ParameterOp::isMatrixInFiles() {
  return getFilesAttr() ? isMatrix(formOf(getFilesAttr(), getWholeShape())[0])
                        : getShapeInFile().size() >= 2;
}

LogicalResult transformer::verifyFiles(ParameterOp op) {
  if (!op.getFilesAttr() && !op.getOtherFilesAttr())
    return success();
  if (op.getFilesAttr() && op.getFileShapeAttr())
    return op.emitOpError()
           << "(C7) has files and file_shape: each file has a shape of its own";
  std::vector<plan::FileForm> forms = formsOf(op);
  absl::Status status = plan::checkForms(op.getWholeShape().vec(), forms);
  if (!status.ok())
    return op.emitOpError() << "(C6) " << std::string(status.message());
  for (const plan::FilePieceT &piece : forms[0])
    if (isMatrix(piece) != isMatrix(forms[0][0]))
      return op.emitOpError()
             << "(C7) files \"" << forms[0][0].pattern << "\" and \""
             << piece.pattern
             << "\" differ in whether they have two dims or more, so it is not "
                "clear whether weights decay";
  return success();
}
