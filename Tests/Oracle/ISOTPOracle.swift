// Compares ISOTPReceiver and ISOTPSender with the kernel's can-isotp on a virtual CAN interface: random messages, with faults. Both sides
// receive the same frames, and must deliver the same messages, send the same frames, and fail in the same cases. Built together with
// Sources/Protocols/CAN as one module, outside the package. Source: linux/can/isotp.h.
//
//   isotp-oracle INTERFACE PROCESS COUNT SEED     PROCESS, 0 to 15, selects the identifiers, so that several programs can run at once
//
// The kernel must be in the state that its frames show. So the program must be bound to one CPU (taskset), and the kernel's timers must stay
// on it (kernel.timer_migration=0): from another CPU, the program receives a consecutive frame before the kernel waits for the flow control,
// or the next one first. A flow control to the kernel can be processed late, too: a loaded CPU leaves the queue to ksoftirqd, and a message
// that the kernel has begun meanwhile takes a repeated flow control for its own. So an exchange ends when the program has received all of
// its own frames, which the kernel's end then has processed. An exchange that differs while the whole machine stood still is repeated, because
// the kernel's timeouts of one second may have passed between two frames.
//
// Known differences, which the faults do not provoke: the kernel aborts a reception when a single frame has an invalid length, waits after a
// truncated consecutive frame, accepts first frames of 6 and 7 bytes and messages above 4095 bytes, and takes block size and separation time
// from the first flow control only.

import Glibc

private let (afCAN, rawProtocol, isotpProtocol): (CInt, CInt, CInt) = (29, 1, 6)
private let (solRaw, solISOTP): (CInt, CInt) = (101, 106)

private func fail(_ message: String) -> Never {
  print("isotp-oracle: \(message)")
  exit(1)
}

extension CInt {
  fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}

private func now() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Instant(time.tv_sec) * .second + Instant(time.tv_nsec)
}

/// Recognises that the program did not run for a while, although it did not wait.
private struct StallWatch {
  private static let limit: Nanoseconds = 500 * .millisecond
  private var last: Instant?
  private var (isStalled, wasStalled) = (false, false)

  /// Called at least as often as something is sent, received or waited for.
  mutating func beat() {
    let time = now()
    if let last, time - last > Self.limit { isStalled = true }
    last = time
  }

  /// Waits on purpose.
  mutating func sleep(_ time: Nanoseconds) {
    beat()
    usleep(UInt32(max(0, time) / .microsecond))
    last = last.map { $0 + time }
    beat()
  }

  mutating func beginExchange() { (wasStalled, isStalled) = (isStalled, false) }
  /// Whether the program did not run in this exchange or the one before.
  var hasStalled: Bool { isStalled || wasStalled }
}

nonisolated(unsafe) private var watch = StallWatch()

/// A difference between the kernel and the project.
private struct Difference: Error {
  let text: String
  init(_ text: String) { self.text = text }
}

/// A CAN socket.
private struct CANSocket {
  let descriptor: CInt

  /// `identifiers`: of an ISO-TP socket, the received and the sent one. `options`: level, number and value.
  private init(
    _ type: __socket_type, _ protocolNumber: CInt, _ interface: UInt32, _ identifiers: [UInt32], _ options: [(CInt, CInt, [UInt8])]
  ) {
    descriptor = socket(afCAN, CInt(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), protocolNumber)
    guard descriptor >= 0 else { fail("cannot open a CAN socket: \(String(cString: strerror(errno))); modprobe can-raw can-isotp") }
    for (level, option, value) in options where setsockopt(descriptor, level, option, value, socklen_t(value.count)) != 0 {
      fail("cannot set option \(option): \(String(cString: strerror(errno)))")
    }
    // struct sockaddr_can: family, interface, and the identifiers.
    let name = [UInt32(afCAN), interface] + identifiers + [0, 0]
    let bound = name.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { bind(descriptor, $0.baseAddress, socklen_t(bytes.count)) }
    }
    guard bound == 0 else { fail("cannot bind: \(String(cString: strerror(errno)))") }
  }

  /// Receives frames with these identifiers, including its own (CAN_RAW_RECV_OWN_MSGS). The buffer holds the frames of a message of the
  /// maximum length (SO_RCVBUFFORCE).
  static func raw(_ interface: UInt32, identifiers: [UInt32]) -> CANSocket {
    let filters = identifiers.flatMap { [$0, 0xC000_07FF] as [UInt32] }.withUnsafeBytes { Array($0) }
    let (own, size) = (CInt(1).bytes, CInt(4 << 20).bytes)
    return CANSocket(SOCK_RAW, rawProtocol, interface, [0, 0], [(solRaw, 1, filters), (solRaw, 4, own), (SOL_SOCKET, 33, size)])
  }

  /// CAN_ISOTP_OPTS: flags, the time of a frame, and four bytes that the flags select. Without that time, 50 µs by default, a timer is only
  /// needed for a separation time. CAN_ISOTP_RECV_FC: block size, separation time, maximum number of waits.
  static func isotp(_ interface: UInt32, received: UInt32, sent: UInt32, blockSize: UInt8) -> CANSocket {
    let options = [0, 0xFFFF_FFFF, 0].flatMap { CInt(truncatingIfNeeded: $0).bytes }
    return CANSocket(SOCK_DGRAM, isotpProtocol, interface, [received, sent], [(solISOTP, 1, options), (solISOTP, 2, [blockSize, 0, 0])])
  }

  func write(_ bytes: [UInt8]) -> Int {
    defer { watch.beat() }
    return Glibc.write(descriptor, bytes, bytes.count)
  }

  /// The next message; nil with errno if there is none.
  func read() -> [UInt8]? {
    withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 1) { buffer in
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      return count < 0 ? nil : Array(buffer[..<count])
    }
  }

  /// The pending error, which it clears.
  func takeError() -> CInt {
    var (code, length): (CInt, socklen_t) = (0, socklen_t(MemoryLayout<CInt>.size))
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
    return code
  }

  /// Waits for input or an error for at most this time.
  func wait(_ milliseconds: CInt) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let end = now() + Instant(milliseconds) * .millisecond
    repeat {
      watch.beat()
      if poll(&entry, 1, min(milliseconds, 50)) > 0 { return true }
    } while now() < end
    watch.beat()
    return false
  }
}

/// A pair of connections between the kernel and the project's implementation.
private struct Lane {
  let raw: CANSocket
  /// The kernel's end that receives, and the one that sends.
  let kernelReceiver: CANSocket
  let kernelSender: CANSocket
  /// What both receivers process.
  var receiver: ISOTPReceiver
  /// The frames to the kernel that have not come back yet, the oldest first.
  private var pending: [CANFrame] = []
  private let base: UInt32

  /// The identifiers are `base` (frames to the kernel), + 1 (its flow control), + 2 (its frames), + 3 (flow control to it).
  init(_ interface: UInt32, base: UInt32, blockSize: UInt8) {
    self.base = base
    kernelReceiver = .isotp(interface, received: base, sent: base + 1, blockSize: blockSize)
    kernelSender = .isotp(interface, received: base + 3, sent: base + 2, blockSize: 0)
    raw = .raw(interface, identifiers: (0..<4).map { base + $0 })
    receiver = ISOTPReceiver(flowControl: ISOTPFlowControl(blockSize: blockSize))
  }

  func identifier(_ offset: UInt32) -> CANIdentifier { CANIdentifier(number: base + offset, is29Bit: false) }

  mutating func send(_ frame: CANFrame) {
    guard raw.write(SocketCAN.bytes(of: frame)) == SocketCAN.frameLength else { fail("cannot send: \(String(cString: strerror(errno)))") }
    pending.append(frame)
  }

  /// The next frame of the kernel; nil if none arrives within this time.
  mutating func frame(within milliseconds: CInt) -> CANFrame? {
    while let frame = received(within: milliseconds) {
      guard frame == pending.first else { return frame }
      pending.removeFirst()
    }
    return nil
  }

  /// Waits until the kernel has processed all frames to it. Returns the frame that comes first otherwise, or a missing one.
  mutating func settle(within milliseconds: CInt) -> CANFrame? {
    while let next = pending.first {
      guard let frame = received(within: milliseconds) else { return next }
      guard frame == next else { return frame }
      pending.removeFirst()
    }
    return nil
  }

  /// Discards everything that is waiting, once all timeouts of the kernel have passed.
  mutating func reset() {
    while raw.read() != nil {}
    while kernelReceiver.read() != nil || errno != EAGAIN {}
    _ = kernelSender.takeError()
    pending = []
    receiver.reset()
  }

  private func received(within milliseconds: CInt) -> CANFrame? {
    var found: CANFrame?
    guard let bytes = raw.read() ?? (milliseconds > 0 && raw.wait(milliseconds) ? raw.read() : nil) else { return nil }
    SocketCAN.decode(bytes) { found = $0 }
    return found
  }
}

/// An entry of the log.
private struct LogEntry {
  enum Event {
    /// The beginning of an exchange, and the message: its length, and, for one of the kernel, block size and separation time.
    case receives(Int, length: Int)
    case sends(Int, length: Int, blockSize: UInt8, separation: UInt8)
    /// A frame to the kernel, and one of the kernel, of which nil is a missing one.
    case toKernel(CANFrame)
    case ofKernel(CANFrame?)
    /// The end of a message of the kernel, and the errors of both sides.
    case ends(ISOTPSender.Failure?, CInt)
    /// A pending error of the kernel.
    case error(String, CInt)
  }

  let time: Instant
  let lane: Int
  let event: Event

  /// `start`: the time of the first entry.
  func text(since start: Instant) -> String {
    let text =
      switch event {
      case .receives(let number, let length): "exchange \(number): \(length) bytes to the kernel"
      case .sends(let number, let length, let blockSize, let separation):
        "exchange \(number): \(length) bytes of the kernel, block size \(blockSize), separation time \(separation)"
      case .toKernel(let frame): "> \(frame.candumpText)"
      case .ofKernel(let frame): "< \(frame?.candumpText ?? "nothing")"
      case .ends(let failure, let code): "\(failure.map { "\($0)" } ?? "sent"), error \(code) of the kernel"
      case .error(let socket, let code): "error \(code) of \(socket)"
      }
    return "\((time - start) / .microsecond) µs  \(text)"
  }
}

/// The exchanges, and what was counted.
private struct Oracle {
  private var lanes: [Lane]
  private var random: SeededRandom
  private var exchange = 0
  private(set) var (received, sent, faults, frameCount, timeouts, stalls) = (0, 0, 0, 0, 0, 0)
  /// The last entries of all lanes, for a report.
  private var log: [LogEntry] = []

  private static let maxWait: CInt = 3000
  private static let timeout: CInt = 1400
  private static let margin: Nanoseconds = 400 * .millisecond

  init(_ interface: UInt32, process: Int, seed: UInt64) {
    random = SeededRandom(seed: seed)
    lanes = [0, 1, 3, 8].enumerated().map { number, blockSize in
      Lane(interface, base: UInt32(0x100 + process * 0x10 + number * 4), blockSize: blockSize)
    }
  }

  private mutating func roll(_ count: UInt64) -> Int { Int(random.next() % count) }

  /// Mostly short: 70 % single frames, 25 % up to 64 bytes, 4.9 % up to 512, 0.1 % up to 4095.
  private mutating func message() -> [UInt8] {
    let length =
      switch roll(1000) {
      case 0..<700: 1 + roll(7)
      case 700..<950: 8 + roll(57)
      case 950..<999: 65 + roll(448)
      default: 513 + roll(3583)
      }
    return (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  private static let (maxLogged, maxReported) = (4000, 150)

  private mutating func note(_ event: LogEntry.Event, _ lane: Int) {
    watch.beat()
    if log.count == 2 * Self.maxLogged { log.removeFirst(Self.maxLogged) }
    log.append(LogEntry(time: now(), lane: lane, event: event))
  }

  /// Reports a difference with what happened on its lane before, in earlier exchanges too, and within two seconds after it.
  private mutating func report(_ difference: Difference, _ lane: Int) -> Never {
    var lines = log.filter { $0.lane == lane }.suffix(Self.maxReported)
    let reported = lines.count
    let end = now() + 2 * .second
    while now() < end {
      if let frame = lanes[lane].frame(within: 100) { lines.append(LogEntry(time: now(), lane: lane, event: .ofKernel(frame))) }
    }
    for (name, socket) in [("the kernel's sender", lanes[lane].kernelSender), ("the kernel's receiver", lanes[lane].kernelReceiver)] {
      lines.append(LogEntry(time: now(), lane: lane, event: .error(name, socket.takeError())))
    }
    let start = lines.first?.time ?? 0
    var texts = lines.map { $0.text(since: start) }
    texts.insert("later:", at: reported)
    fail("exchange \(exchange), lane \(lane): \(difference.text)\n" + texts.joined(separator: "\n"))
  }

  private mutating func sendToKernel(_ frame: CANFrame, _ lane: Int) {
    frameCount += 1
    note(.toKernel(frame), lane)
    lanes[lane].send(frame)
  }

  /// Waits until the kernel has processed all frames to it, and requires that it has sent no others.
  private mutating func settle(_ lane: Int) throws(Difference) {
    guard let extra = lanes[lane].settle(within: Self.maxWait) ?? lanes[lane].frame(within: 0) else { return }
    note(.ofKernel(extra), lane)
    throw Difference("the kernel also sends, or does not receive, \(extra.candumpText)")
  }

  /// Makes this number of exchanges, without those that are repeated.
  mutating func run(_ count: Int) {
    while exchange < count {
      watch.beginExchange()
      let lane = roll(4)
      do {
        if roll(2) == 0 { try receive(lane) } else { try send(lane) }
        exchange += 1
      } catch {
        if !watch.hasStalled { report(error, lane) }
        stalls += 1
        if stalls > 100 { fail("this machine is too busy: \(stalls) stalls in \(exchange) exchanges") }
        watch.sleep(3 * .second)
        lanes[lane].reset()
      }
    }
  }

  // MARK: The receivers

  /// Sends a message, possibly with a fault, to the kernel and to the project's receiver.
  private mutating func receive(_ lane: Int) throws(Difference) {
    received += 1
    let waits = roll(5000) == 0
    var (expected, failed): ([[UInt8]], Bool) = ([], expireOverdue(lane))
    let isFaulty = waits || roll(10) < 3
    if isFaulty { faults += 1 }
    // A truncated last frame would be a fault of its own if it belonged to another message.
    let padding: UInt8? = isFaulty || lanes[lane].receiver.isReceiving || roll(2) == 0 ? 0xCC : nil
    let message = message()
    note(.receives(exchange, length: message.count), lane)
    let frames = framed(message, padding, lane)
    // Without its last frame, a message of several frames times out.
    for frame in waits ? (frames.count > 1 ? frames.dropLast() : frames[...]) : isFaulty ? faulty(frames)[...] : frames[...] {
      let event = lanes[lane].receiver.receive(frame, at: now())
      sendToKernel(frame, lane)
      switch event {
      case .none, .flowControl: break
      case .message(let bytes, _): expected.append(bytes)
      case .failed: failed = true
      case .awaitsFlowControl:
        let wanted = lanes[lane].receiver.flowControl.frame(to: lanes[lane].identifier(1), padding: nil)
        let found = lanes[lane].frame(within: Self.maxWait)
        note(.ofKernel(found), lane)
        guard found == wanted else {
          throw Difference("the kernel sends \(found?.candumpText ?? "no flow control") instead of \(wanted.candumpText)")
        }
      }
    }
    if waits, lanes[lane].receiver.isReceiving {
      timeouts += 1
      watch.sleep(Instant(Self.timeout) * .millisecond)
      if lanes[lane].receiver.expire(at: now()).isEmpty { throw Difference("the project's receiver does not time out") }
      failed = true
    }
    try compareMessages(expected, failed, lane)
    try settle(lane)
  }

  /// Ends an earlier message that is incomplete and about to time out, or has timed out while another lane waited. Returns whether it did.
  private mutating func expireOverdue(_ lane: Int) -> Bool {
    guard let deadline = lanes[lane].receiver.deadline, now() > deadline - Self.margin else { return false }
    watch.sleep(max(0, deadline + Self.margin - now()))
    return !lanes[lane].receiver.expire(at: now()).isEmpty
  }

  private mutating func compareMessages(_ expected: [[UInt8]], _ failed: Bool, _ lane: Int) throws(Difference) {
    let socket = lanes[lane].kernelReceiver
    var (found, hasFailed): ([[UInt8]], Bool) = ([], false)
    while true {
      if let bytes = socket.read() {
        found.append(bytes)
      } else if errno == EILSEQ || errno == ETIMEDOUT {
        hasFailed = true
      } else if errno != EAGAIN {
        throw Difference("the kernel reports \(String(cString: strerror(errno)))")
      } else if found.count >= expected.count && hasFailed == failed || !socket.wait(Self.maxWait) {
        break
      }
    }
    if found != expected { throw Difference("the kernel delivers \(found) instead of \(expected)") }
    if hasFailed != failed { throw Difference("the kernel reports \(hasFailed ? "a failure" : "no failure"), the project the opposite") }
  }

  /// The frames of a message, as the project sends them.
  private func framed(_ message: [UInt8], _ padding: UInt8?, _ lane: Int) -> [CANFrame] {
    var sender = ISOTPSender(message, to: lanes[lane].identifier(0), padding: padding)
    var frames: [CANFrame] = []
    while !sender.isDone {
      while let frame = sender.next(at: 0) { frames.append(frame) }
      sender.receive(ISOTPFlowControl(), at: 0)
    }
    return frames
  }

  /// The frames with one fault.
  private mutating func faulty(_ frames: [CANFrame]) -> [CANFrame] {
    var frames = frames
    let index = roll(UInt64(frames.count))
    switch roll(6) {
    case 0: frames.remove(at: index)
    case 1: frames.insert(frames[index], at: index)
    case 2: frames.swapAt(index, min(index + 1, frames.count - 1))
    case 3:
      // Another sequence number, or a consecutive frame without a message.
      let other = [0x20 | UInt8(roll(16))] + frames[index].bytes.dropFirst()
      frames[index] = CANFrame(frames[index].identifier, other)
    case 4:
      // Another message in between.
      let other = [UInt8(1 + roll(7))] + (0..<7).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      frames.insert(CANFrame(frames[index].identifier, other), at: index)
    default:
      // A frame that is none of a message: flow control, or a reserved type.
      let other = [UInt8(0x30 | roll(3)), 0, 0, 0] + [UInt8](repeating: 0, count: roll(5))
      let reserved = [UInt8(0x40 + roll(0xC0))] + [UInt8](repeating: 1, count: roll(8))
      frames.insert(CANFrame(frames[index].identifier, roll(2) == 0 ? other : reserved), at: index)
    }
    return frames
  }

  // MARK: The senders

  /// Sends a message with the kernel and with the project's sender, and gives both the same flow control.
  private mutating func send(_ lane: Int) throws(Difference) {
    sent += 1
    let message = message()
    let kernel = lanes[lane].kernelSender
    var attempts = 0
    while kernel.write(message) != message.count {
      attempts += 1
      if errno != EAGAIN || attempts > 2000 { throw Difference("the kernel does not send: \(String(cString: strerror(errno)))") }
      usleep(1000)
    }
    // The separation time of 100 to 300 µs is tested with short messages only.
    let separation: UInt8 = message.count < 60 && roll(50) == 0 ? UInt8(0xF1 + roll(3)) : 0
    let blockSize = UInt8([0, 0, 1, 2, 7, 40][roll(6)])
    note(.sends(exchange, length: message.count, blockSize: blockSize, separation: separation), lane)
    var sender = ISOTPSender(message, to: lanes[lane].identifier(2), padding: nil)
    var (virtual, waits): (Instant, Int) = (0, 0)
    var isFaulty = false
    while true {
      try compareFrames(&sender, &virtual, lane)
      if sender.isDone || sender.failure != nil { break }
      var control = ISOTPFlowControl(blockSize: blockSize, separation: separation)
      switch roll(40) {
      case 0 where waits < 3: (control.status, waits) = (.wait, waits + 1)
      case 1: control.status = .overflow
      case 2: control.status = .reserved
      case 3 where roll(100) == 0:
        // The flow control is lost.
        timeouts += 1
        watch.sleep(Instant(Self.timeout) * .millisecond)
        virtual += Instant(Self.timeout) * .millisecond
        guard sender.next(at: virtual) == nil, sender.failure == .noFlowControl else {
          throw Difference("the project's sender does not time out")
        }
        isFaulty = true
        continue
      default: break
      }
      isFaulty = isFaulty || control.status != .proceed
      try sendControl(control, &sender, virtual, lane)
      // A duplicate: ignored, unless the next block is awaited meanwhile.
      if roll(40) == 0 {
        isFaulty = true
        try compareFrames(&sender, &virtual, lane)
        try sendControl(control, &sender, virtual, lane)
      }
    }
    if isFaulty { faults += 1 }
    try compareResult(sender.failure, lane)
    try settle(lane)
  }

  private mutating func sendControl(
    _ control: ISOTPFlowControl, _ sender: inout ISOTPSender, _ virtual: Instant, _ lane: Int
  ) throws(Difference) {
    let status = control.status == .reserved ? UInt8(3 + roll(13)) : control.status.rawValue
    let frame = CANFrame(lanes[lane].identifier(3), [0x30 | status, control.blockSize, control.separation])
    guard case .flowControl(let parsed)? = frame.isotp() else { throw Difference("\(frame.candumpText) is no flow control") }
    sender.receive(parsed, at: virtual)
    sendToKernel(frame, lane)
  }

  /// Requires that the kernel sends the frames that the project's sender sends until it waits.
  private mutating func compareFrames(_ sender: inout ISOTPSender, _ virtual: inout Instant, _ lane: Int) throws(Difference) {
    while true {
      while let frame = sender.next(at: virtual) {
        frameCount += 1
        let found = lanes[lane].frame(within: Self.maxWait)
        note(.ofKernel(found), lane)
        if found != frame { throw Difference("the kernel sends \(found?.candumpText ?? "nothing") instead of \(frame.candumpText)") }
      }
      // The next frame is due after the separation time; a flow control only after a second.
      guard let deadline = sender.deadline, deadline - virtual < 500 * .millisecond else { return }
      virtual = deadline
    }
  }

  private mutating func compareResult(_ failure: ISOTPSender.Failure?, _ lane: Int) throws(Difference) {
    let wanted: [CInt] =
      switch failure {
      case nil: [0]
      case .overflow: [EMSGSIZE]
      case .noFlowControl: [ECOMM]
      // Linux 6.1.176 ends the message without an error; 6.1.192 reports one.
      case .invalidStatus: [0, EBADMSG]
      case .wrongLength, .tooManyWaits: throw Difference("the project's sender fails: \(failure?.message ?? "")")
      }
    // An error can follow a moment later.
    let begun = now()
    if !wanted.contains(0) { _ = lanes[lane].kernelSender.wait(Self.maxWait) }
    let code = lanes[lane].kernelSender.takeError()
    note(.ends(failure, code), lane)
    guard !wanted.contains(code) else { return }
    throw Difference("the kernel reports \(code) instead of \(wanted[0]) after \((now() - begun) / .millisecond) ms")
  }
}

@main
enum Program {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let process = Int(arguments[2]), (0...15).contains(process), let count = Int(arguments[3]),
      let seed = UInt64(arguments[4])
    else {
      print("usage: isotp-oracle INTERFACE PROCESS COUNT SEED")
      exit(2)
    }
    let interface = if_nametoindex(arguments[1])
    guard interface > 0 else { fail("there is no interface \(arguments[1])") }
    var oracle = Oracle(UInt32(interface), process: process, seed: seed)
    oracle.run(count)
    print(
      "exchanges \(count) received \(oracle.received) sent \(oracle.sent) faults \(oracle.faults) timeouts \(oracle.timeouts) stalls \(oracle.stalls) frames \(oracle.frameCount)"
    )
  }
}
