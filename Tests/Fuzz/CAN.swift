// Fuzzes the forms of CAN frames (slcan, candump, the kernel's) and the messages of ISO 15765-2. Where the input is split changes nothing,
// every frame survives its own form, and no message is longer than its declared length, or sent otherwise than declared. Built together
// with Sources/Protocols as one module, outside the package.

private func checkSLCAN(_ bytes: [UInt8], _ split: Int) {
  var (whole, parts) = (SLCANDecoder(), SLCANDecoder())
  var (items, sameItems): ([SLCANDecoder.Item], [SLCANDecoder.Item]) = ([], [])
  whole.receive(bytes) { items.append($0) }
  for start in stride(from: 0, to: bytes.count, by: split + 1) {
    parts.receive(bytes[start..<min(start + split + 1, bytes.count)]) { sameItems.append($0) }
  }
  require(items == sameItems && whole.damagedLines == parts.damagedLines, "where the input is split changes the result")
  for case .frame(let frame) in items {
    require(frame.kind != .error && frame.count <= CANFrame.maxCount, "an impossible frame")
    var found: [SLCANDecoder.Item] = []
    whole = SLCANDecoder()
    whole.receive(SLCAN.text(of: frame)) { found.append($0) }
    require(found == [.frame(frame)], "\(frame.candumpText) does not survive slcan")
  }
}

private func checkCandump(_ bytes: [UInt8]) {
  for line in bytes.split(separator: lineFeed) {
    guard let parsed = CandumpLine(line) else { continue }
    require(CandumpLine(parsed.text.utf8) == parsed, "\(parsed.text) is not parsed as the same line")
    checkKernelForm([parsed.frame])
  }
}

/// Requires that frames survive the kernel's form.
private func checkKernelForm(_ frames: [CANFrame]) {
  var found: [CANFrame] = []
  SocketCAN.decode(frames.flatMap(SocketCAN.bytes)) { found.append($0) }
  require(found == frames, "frames do not survive the kernel's form")
}

private func checkSocketCAN(_ bytes: [UInt8]) {
  var frames: [CANFrame] = []
  SocketCAN.decode(bytes) { frames.append($0) }
  require(frames.count <= bytes.count / SocketCAN.frameLength, "more frames than the bytes hold")
  checkKernelForm(frames)
  var state = CANInterfaceState()
  for frame in frames {
    state.update(frame, at: 0)
    require(CANFrame(candump: frame.candumpText.utf8) == frame, "\(frame.candumpText) is not parsed as the same frame")
    require(frame.maxBits <= 160, "a frame with \(frame.maxBits) bits")
  }
}

private let addressings: [ISOTPAddressing] = [.normal, .extended(target: 0x12), .mixed(0x34)]

/// The input as frames: a byte with the number of bytes, the sender and the time until the frame, then the bytes.
private func checkReceiver(_ bytes: [UInt8], _ options: UInt8) {
  let flowControl = ISOTPFlowControl(blockSize: options >> 2 & 7)
  var receiver = ISOTPReceiver(addressings[Int(options & 3) % 3], flowControl: flowControl)
  var (rest, now): (ArraySlice<UInt8>, Instant) = (bytes[...], 0)
  var received = 0
  while let head = rest.popFirst() {
    let content = rest.prefix(min(Int(head & 15), CANFrame.maxCount))
    rest = rest.dropFirst(content.count)
    now += [0, .millisecond, 300 * .millisecond, .second][Int(head >> 6)]
    let frame = CANFrame(CANIdentifier(number: 0x7E8 | UInt32(head >> 4 & 3), is29Bit: false), content)
    received += content.count
    if case .message(let message, let source) = receiver.receive(frame, at: now) {
      require((1...CANFrame.maxISOTPLength).contains(message.count) && message.count <= received, "a message of \(message.count) bytes")
      require(source == frame.identifier, "a message from another sender")
    }
    require(receiver.deadline.map { $0 <= now + .second } ?? !receiver.isReceiving, "a message without a deadline")
    _ = receiver.expire(at: now)
    require(receiver.deadline.map { $0 > now } ?? true, "a message is not ended at its deadline")
  }
  _ = receiver.expire(at: now + .second)
  require(!receiver.isReceiving, "a message does not end")
}

/// A message whose length the first two bytes give, and the flow controls of its receiver.
private func checkSender(_ bytes: [UInt8], _ options: UInt8) {
  guard bytes.count > 2 else { return }
  let addressing = addressings[Int(options & 3) % 3]
  let message = (0..<(Int(bytes[0] & 0x1F) << 8 | Int(bytes[1]))).map { UInt8(truncatingIfNeeded: $0 &* 7) }
  let identifier = CANIdentifier(number: 0x7E0, is29Bit: false)
  var sender = ISOTPSender(message, to: identifier, addressing, padding: options & 4 == 0 ? nil : 0xAA)
  var receiver = ISOTPReceiver(ISOTPAddressing(sentByte: addressing.receivedByte, receivedByte: addressing.sentByte))
  var (delivered, now): ([UInt8]?, Instant) = (nil, 0)
  func send() {
    var count = 0
    while let frame = sender.next(at: now) {
      count += 1
      require(count <= CANFrame.maxISOTPLength, "frames without end")
      if case .message(let bytes, _) = receiver.receive(frame, at: now) { delivered = bytes }
    }
  }
  send()
  for start in stride(from: 2, to: bytes.count - 2, by: 3) {
    let frame = CANFrame(
      isotp: 0x30 | bytes[start] & 15, second: bytes[start + 1], [bytes[start + 2]], to: identifier, addressing, padding: nil)
    let received = ISOTPAddressing(sentByte: addressing.receivedByte, receivedByte: addressing.sentByte)
    guard case .flowControl(let flowControl)? = frame.isotp(received) else { return require(false, "a flow control is not recognised") }
    sender.receive(flowControl, at: now)
    // Up to the maximum number of frames that it permits, with the separation that it demands.
    for _ in 0..<700 {
      send()
      guard let deadline = sender.deadline, deadline - now < .second else { break }
      now = max(now, deadline)
    }
  }
  now += 2 * .second
  send()
  require(sender.isDone || sender.failure != nil || sender.deadline != nil, "a message does not end")
  require(sender.isDone == (delivered == message && !message.isEmpty), "a message arrives changed, or is not sent as reported")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = input.first else { return 0 }
  let body = Array(input.dropFirst())
  switch first >> 5 {
  case 0, 1: checkSLCAN(body, Int(first & 31))
  case 2: checkCandump(body)
  case 3: checkSocketCAN(body)
  case 4, 5: checkReceiver(body, first & 31)
  default: checkSender(body, first & 31)
  }
  return 0
}
