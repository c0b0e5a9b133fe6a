// Fuzzes the parsers of an ELM327's replies. Messages are complete and lie within the payload, neither an earlier reply nor blanks
// within a line change the result, and every value is valid for its property. Built together with Sources/Protocols as one module,
// outside the package.

/// A reader that keeps its storage from one reply to the next.
nonisolated(unsafe) private var usedReader = ReplyReader()

private func checkBMSRecord(_ bytes: ArraySlice<UInt8>) {
  bytes.withUnsafeBufferPointer { bytes in
    BMSRecord.read(bytes) { position, result in
      if case .value(let value) = result { BMSRecord.entries[position].dataRow.property.check(value) }
    }
  }
}

private func checkRow(_ row: DataRow, _ bytes: ArraySlice<UInt8>) {
  if case .value(let value) = bytes.withUnsafeBufferPointer(row.read) { row.property.check(value) }
}

/// Requires that the readers of all tables stay within the message, and that their values are valid.
private func checkTables(_ bytes: ArraySlice<UInt8>) {
  var covered = 1
  let head = bytes.first == 0x42 ? 2 : 1
  let problem = StandardParameter.split(bytes) { number, data in
    require(data.lowerBound > bytes.startIndex && data.upperBound <= bytes.endIndex, "the data of PID \(number) is outside the message")
    covered += head + data.count
    for row in StandardParameter.all[number]?.rows ?? [] { checkRow(row, bytes[data]) }
  }
  require(problem == nil ? covered == bytes.count : covered == 1, "the PIDs do not cover the response, or part of an invalid one is used")
  // A varying eighth of the records reads the message whatever its prefix is.
  for (index, record) in ManufacturerRecord.all.enumerated()
  where index % 8 == bytes.count % 8 || bytes.starts(with: record.responsePrefix) {
    for row in record.rows { checkRow(row, bytes.dropFirst(record.responsePrefix.count)) }
  }
  if case .codes(let codes) = TroubleCode.read(bytes) {
    require(2 * codes.count < bytes.count, "more codes than the response has bytes for")
    for code in codes { require(TroubleCode(code.text) == code && !code.isPadding, "\(code.text) is not parsed as the same code") }
  }
  if case .results(let results) = TestResult.read(bytes) {
    require(results.count * 9 + 1 == bytes.count, "the test results do not cover the response")
  }
  var frame = FreezeFrame()
  if frame.add(bytes) != nil { require(frame == FreezeFrame(), "a rejected response changed the freeze frame") }
}

/// Requires that codes count as cleared only after a positive response, and that a moving vehicle prevents clearing.
private func checkClearing(_ reader: ReplyReader) {
  var loss = ClearingPreview(isConfirmed: true)
  for (index, request) in loss.requests.enumerated() {
    if let answers = try? reader.answers(to: request) { try? loss.process(answers, index) }
  }
  require(loss.message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "the loss report is not one printable line")
  require(loss.message.utf8.count < 100_000, "unbounded loss report")
  require(!loss.motion.isMovingOrRunning || loss.abortError != nil, "a moving vehicle does not prevent clearing")
  var clearing = CodeClearing(loss.ecus, Motion(), requiresResponse: true)
  if let answers = try? reader.answers(to: [0x04]) { try? clearing.process(answers, CodeClearing.clearIndex) }
  require(!clearing.hasCleared || reader.messages.contains { reader.bytes(of: $0).first == 0x44 }, "cleared without a positive response")
}

private func check(_ reply: [UInt8], from start: Int) {
  var reader = ReplyReader()
  let outcome = reader.read(reply, from: start)
  require(usedReader.read(reply, from: start) == outcome, "the result of a used reader differs")
  require(reader.payload.count <= 32 * 0xFFF, "unbounded payload")
  guard outcome == .messages else { return }
  require(usedReader.messages == reader.messages && usedReader.payload == reader.payload, "the messages of a used reader differ")
  for message in reader.messages {
    require(message.isComplete && message.start + message.length <= reader.payload.count, "a message is incomplete or outside the payload")
    require(ResponseDescription.of(reader.bytes(of: message)).utf8.count < 100_000, "unbounded description")
    checkTables(reader.bytes(of: message))
    checkBMSRecord(reader.bytes(of: message))
    for head in [2, 3] where message.length >= head { checkBMSRecord(reader.bytes(of: message).dropFirst(head)) }
  }
  checkClearing(reader)
  if case .texts(let texts) = VehicleInformation.read(reader.messages.map { reader.bytes(of: $0) }) {
    require(texts.joined().utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "vehicle information is not printable ASCII")
  }
  require(usedReader.read(reply[min(start, reply.count)...].filter { $0 != space && $0 != tab }) == .messages, "blanks change the result")
  require(usedReader.payload == reader.payload, "blanks change the payload")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let reply = Array(UnsafeBufferPointer(start: start, count: count))
  check(reply, from: 0)
  check(reply, from: Int(reply.first ?? 0) % 8)
  for step in SetupStep.allCases {
    var traits = AdapterTraits()
    _ = SetupReply(to: step, reply[...], &traits)
    require((traits.name ?? "").utf8.count <= 200, "unbounded name of the adapter")
  }
  require(printable(reply).utf8.count <= 200, "unbounded printable text")
  return 0
}
