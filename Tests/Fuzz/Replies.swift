// Hostile replies for libFuzzer: whatever an adapter prints, its messages are whole and lie within their storage, a reader
// that has read before reads the same, blanks within a line mean nothing, and no field of any table leaves its range.
// Built together with Sources/Protocols as one module, outside of the package.

nonisolated(unsafe) private var usedReader = CANReader()

private func checkPage(_ bytes: ArraySlice<UInt8>) {
  bytes.withUnsafeBufferPointer { bytes in
    BMSRecord.read(bytes) { position, result in
      guard case .value(let value) = result else { return }
      let property = BMSRecord.entries[position].dataRow.property
      hold(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
    }
  }
}

private func checkRow(_ row: DataRow, _ bytes: ArraySlice<UInt8>) {
  guard case .value(let value) = bytes.withUnsafeBufferPointer(row.read) else { return }
  let property = row.property
  hold(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
}

/// The readers of the tables: what they hand on lies within the message, and what they read is what they declare.
private func checkTables(_ bytes: ArraySlice<UInt8>) {
  var covered = 1
  let head = bytes.first == 0x42 ? 2 : 1
  let problem = StandardParameter.split(bytes) { number, data in
    hold(data.lowerBound > bytes.startIndex && data.upperBound <= bytes.endIndex, "a parameter outside of its message")
    covered += head + data.count
    for row in StandardParameter.all[number]?.rows ?? [] { checkRow(row, bytes[data]) }
  }
  hold(problem == nil ? covered == bytes.count : covered == 1, "parts of an answer that does not come out even")
  for (index, page) in ManufacturerRecord.all.enumerated() where index % 8 == bytes.count % 8 || bytes.starts(with: page.responsePrefix) {
    for row in page.rows { checkRow(row, bytes.dropFirst(page.responsePrefix.count)) }
  }
  if case .codes(let codes) = TroubleCode.read(bytes) {
    hold(2 * codes.count < bytes.count, "more codes than bytes")
    for code in codes { hold(TroubleCode(code.text) == code && !code.isFiller, "a code is not its text") }
  }
  if case .results(let results) = TestResult.read(bytes) { hold(results.count * 9 + 1 == bytes.count, "a test result too many") }
  var frame = FreezeFrame()
  if frame.add(bytes) != nil { hold(frame == FreezeFrame(), "a broken answer left something in a frozen frame") }
}

/// Whatever controllers say, who has not said so has not cleared, and what is kept of it is a line.
private func checkSurveys(_ reader: CANReader) {
  var loss = CodeLoss(isConfirmed: true)
  for (place, question) in loss.requests.enumerated() {
    if let answers = try? reader.answers(to: question) { try? loss.process(answers, place) }
  }
  hold(loss.message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && loss.message.utf8.count < 100_000, "what is lost is no line")
  hold(!loss.motion.isMoving || loss.abortError != nil, "it moves and nobody minds")
  var clearing = CodeClearing(loss.ecus, Motion(), mustAnswer: true)
  if let answers = try? reader.answers(to: [0x04]) { try? clearing.process(answers, CodeClearing.clearIndex) }
  hold(!clearing.hasCleared || reader.messages.contains { reader.bytes(of: $0).first == 0x44 }, "cleared without a word")
}

private func check(_ reply: [UInt8], from start: Int) {
  var reader = CANReader()
  let outcome = reader.read(reply, from: start)
  hold(usedReader.read(reply, from: start) == outcome, "a used reader reads something else")
  hold(reader.payload.count <= 32 * 0xFFF, "an unbounded payload")
  guard outcome == .messages else { return }
  hold(usedReader.messages == reader.messages && usedReader.payload == reader.payload, "a used reader reads other messages")
  for message in reader.messages {
    hold(message.isComplete && message.start + message.length <= reader.payload.count, "a message is not whole")
    hold(ResponseDescription.of(reader.bytes(of: message)).utf8.count < 100_000, "unbounded words")
    checkTables(reader.bytes(of: message))
    checkPage(reader.bytes(of: message))
    for head in [2, 3] where message.length >= head { checkPage(reader.bytes(of: message).dropFirst(head)) }
  }
  checkSurveys(reader)
  if case .texts(let texts) = VehicleInformation.read(reader.messages.map { reader.bytes(of: $0) }) {
    hold(texts.joined().utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "vehicle information that is no plain text")
  }
  hold(usedReader.read(reply[min(start, reply.count)...].filter { $0 != space && $0 != tab }) == .messages, "blanks make a difference")
  hold(usedReader.payload == reader.payload, "blanks make another message")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let reply = Array(UnsafeBufferPointer(start: start, count: count))
  check(reply, from: 0)
  check(reply, from: Int(reply.first ?? 0) % 8)
  for step in SetupStep.allCases {
    var traits = AdapterTraits()
    _ = SetupAnswer(to: step, reply[...], &traits)
    hold((traits.name ?? "").utf8.count <= 200, "an unbounded name")
  }
  hold(printable(reply).utf8.count <= 200, "an unbounded text")
  return 0
}
