// Compares ISOTPReceiver and ISOTPSender with the kernel's can-isotp on a virtual CAN interface: random messages, with faults. Both sides
// receive the same frames, and must deliver the same messages, send the same frames, and fail in the same cases. Built together with
// Sources/Protocols/CAN as one module, outside the package. Source: linux/can/isotp.h.
//
//   isotp-oracle INTERFACE PROCESS COUNT SEED     PROCESS, 0 to 15, selects the identifiers, so that several programs can run at once
//
// The program must be bound to one CPU (taskset), so that the kernel's state does not change between two of its frames. Known differences,
// which the faults do not provoke: the kernel aborts a reception when a single frame has an invalid length, waits after a truncated consecutive
// frame, accepts first frames of 6 and 7 bytes and messages above 4095 bytes, and takes block size and separation time from the first flow
// control only.

import Glibc

private let (afCAN, rawProtocol, isotpProtocol): (CInt, CInt, CInt) = (29, 1, 6)
private let (solRaw, solISOTP): (CInt, CInt) = (101, 106)

private func fail(_ message: String) -> Never {
  print("isotp-oracle: \(message)")
  exit(1)
}

private func now() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Instant(time.tv_sec) * .second + Instant(time.tv_nsec)
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

  /// Receives frames with these identifiers. The buffer holds the frames of a message of the maximum length (SO_RCVBUFFORCE).
  static func raw(_ interface: UInt32, identifiers: [UInt32]) -> CANSocket {
    let filters = identifiers.flatMap { [$0, 0xC000_07FF] as [UInt32] }.withUnsafeBytes { Array($0) }
    let size = [CInt(4 << 20)].withUnsafeBytes { Array($0) }
    return CANSocket(SOCK_RAW, rawProtocol, interface, [0, 0], [(solRaw, 1, filters), (SOL_SOCKET, 33, size)])
  }

  /// CAN_ISOTP_RECV_FC: block size, separation time, maximum number of waits.
  static func isotp(_ interface: UInt32, received: UInt32, sent: UInt32, blockSize: UInt8) -> CANSocket {
    CANSocket(SOCK_DGRAM, isotpProtocol, interface, [received, sent], [(solISOTP, 2, [blockSize, 0, 0])])
  }

  func write(_ bytes: [UInt8]) -> Int { Glibc.write(descriptor, bytes, bytes.count) }

  /// The next message; nil with errno if there is none.
  func read() -> [UInt8]? {
    withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 1) { buffer in
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      return count < 0 ? nil : Array(buffer[..<count])
    }
  }

  /// Waits for input or an error for at most this time.
  func wait(_ milliseconds: CInt) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, milliseconds) > 0
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
  private let base: UInt32

  /// The identifiers are `base` (frames to the kernel), + 1 (its flow control), + 2 (its frames), + 3 (flow control to it).
  init(_ interface: UInt32, base: UInt32, blockSize: UInt8) {
    self.base = base
    kernelReceiver = .isotp(interface, received: base, sent: base + 1, blockSize: blockSize)
    kernelSender = .isotp(interface, received: base + 3, sent: base + 2, blockSize: 0)
    raw = .raw(interface, identifiers: [base + 1, base + 2])
    receiver = ISOTPReceiver(flowControl: ISOTPFlowControl(blockSize: blockSize))
  }

  func identifier(_ offset: UInt32) -> CANIdentifier { CANIdentifier(number: base + offset, is29Bit: false) }

  func send(_ frame: CANFrame) {
    guard raw.write(SocketCAN.bytes(of: frame)) == SocketCAN.frameLength else { fail("cannot send: \(String(cString: strerror(errno)))") }
  }

  /// The next frame of the kernel; nil if none arrives within this time.
  func frame(within milliseconds: CInt) -> CANFrame? {
    var found: CANFrame?
    guard let bytes = raw.read() ?? (milliseconds > 0 && raw.wait(milliseconds) ? raw.read() : nil) else { return nil }
    SocketCAN.decode(bytes) { found = $0 }
    return found
  }
}

/// The exchanges, and what was counted.
private struct Oracle {
  private var lanes: [Lane]
  private var random: SeededRandom
  private var exchange = 0
  private(set) var (received, sent, faults, frameCount, timeouts) = (0, 0, 0, 0, 0)
  /// The frames of the current exchange, for a report: those to the kernel, and those of the kernel, of which nil is a missing one.
  private var log: [(isSent: Bool, frame: CANFrame?)] = []

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

  private func differ(_ what: String) -> Never {
    let lines = log.suffix(60).map { "\($0.isSent ? ">" : "<") \($0.frame?.candumpText ?? "nothing")" }
    fail("exchange \(exchange): \(what)\n" + lines.joined(separator: "\n"))
  }

  mutating func run(_ count: Int) {
    for number in 0..<count {
      exchange = number
      log.removeAll(keepingCapacity: true)
      let lane = roll(4)
      if roll(2) == 0 { receive(lane) } else { send(lane) }
    }
  }

  // MARK: The receivers

  /// Sends a message, possibly with a fault, to the kernel and to the project's receiver.
  private mutating func receive(_ lane: Int) {
    received += 1
    let waits = roll(5000) == 0
    var (expected, failed): ([[UInt8]], Bool) = ([], expireOverdue(lane))
    let isFaulty = waits || roll(10) < 3
    if isFaulty { faults += 1 }
    // A truncated last frame would be a fault of its own if it belonged to another message.
    let padding: UInt8? = isFaulty || lanes[lane].receiver.isReceiving || roll(2) == 0 ? 0xCC : nil
    let frames = framed(message(), padding, lane)
    // Without its last frame, a message of several frames times out.
    for frame in waits ? (frames.count > 1 ? frames.dropLast() : frames[...]) : isFaulty ? faulty(frames)[...] : frames[...] {
      frameCount += 1
      log.append((true, frame))
      let event = lanes[lane].receiver.receive(frame, at: now())
      lanes[lane].send(frame)
      switch event {
      case .none, .flowControl: break
      case .message(let bytes, _): expected.append(bytes)
      case .failed: failed = true
      case .awaitsFlowControl:
        let wanted = lanes[lane].receiver.flowControl.frame(to: lanes[lane].identifier(1), padding: nil)
        let found = lanes[lane].frame(within: Self.maxWait)
        log.append((false, found))
        if found != wanted { differ("the kernel sends \(found?.candumpText ?? "no flow control") instead of \(wanted.candumpText)") }
      }
    }
    if waits, lanes[lane].receiver.isReceiving {
      timeouts += 1
      usleep(UInt32(Self.timeout) * 1000)
      if lanes[lane].receiver.expire(at: now()).isEmpty { differ("the project's receiver does not time out") }
      failed = true
    }
    compareMessages(expected, failed, lane)
    if let extra = lanes[lane].frame(within: 0) { differ("the kernel also sends \(extra.candumpText)") }
  }

  /// Ends an earlier message that is incomplete and about to time out, or has timed out while another lane waited. Returns whether it did.
  private mutating func expireOverdue(_ lane: Int) -> Bool {
    guard let deadline = lanes[lane].receiver.deadline, now() > deadline - Self.margin else { return false }
    usleep(UInt32(max(0, deadline + Self.margin - now()) / .microsecond))
    return !lanes[lane].receiver.expire(at: now()).isEmpty
  }

  private func compareMessages(_ expected: [[UInt8]], _ failed: Bool, _ lane: Int) {
    let socket = lanes[lane].kernelReceiver
    var (found, hasFailed): ([[UInt8]], Bool) = ([], false)
    while true {
      if let bytes = socket.read() {
        found.append(bytes)
      } else if errno == EILSEQ || errno == ETIMEDOUT {
        hasFailed = true
      } else if errno != EAGAIN {
        differ("the kernel reports \(String(cString: strerror(errno)))")
      } else if found.count >= expected.count && hasFailed == failed || !socket.wait(Self.maxWait) {
        break
      }
    }
    if found != expected { differ("the kernel delivers \(found) instead of \(expected)") }
    if hasFailed != failed { differ("the kernel reports \(hasFailed ? "a failure" : "no failure"), the project the opposite") }
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
  private mutating func send(_ lane: Int) {
    sent += 1
    let message = message()
    let kernel = lanes[lane].kernelSender
    var attempts = 0
    while kernel.write(message) != message.count {
      attempts += 1
      if errno != EAGAIN || attempts > 2000 { differ("the kernel does not send: \(String(cString: strerror(errno)))") }
      usleep(1000)
    }
    // The separation time of 100 to 300 µs is tested with short messages only.
    let separation: UInt8 = message.count < 60 && roll(50) == 0 ? UInt8(0xF1 + roll(3)) : 0
    let blockSize = UInt8([0, 0, 1, 2, 7, 40][roll(6)])
    var sender = ISOTPSender(message, to: lanes[lane].identifier(2), padding: nil)
    var (virtual, waits): (Instant, Int) = (0, 0)
    var isFaulty = false
    while true {
      compareFrames(&sender, &virtual, lane)
      if sender.isDone || sender.failure != nil { break }
      var control = ISOTPFlowControl(blockSize: blockSize, separation: separation)
      switch roll(40) {
      case 0 where waits < 3: (control.status, waits) = (.wait, waits + 1)
      case 1: control.status = .overflow
      case 2: control.status = .reserved
      case 3 where roll(100) == 0:
        // The flow control is lost.
        timeouts += 1
        usleep(UInt32(Self.timeout) * 1000)
        virtual += Instant(Self.timeout) * .millisecond
        if sender.next(at: virtual) != nil || sender.failure != .noFlowControl { differ("the project's sender does not time out") }
        isFaulty = true
        continue
      default: break
      }
      isFaulty = isFaulty || control.status != .proceed
      sendControl(control, &sender, virtual, lane)
      // A duplicate: ignored, unless the next block is awaited meanwhile.
      if roll(40) == 0 {
        isFaulty = true
        compareFrames(&sender, &virtual, lane)
        sendControl(control, &sender, virtual, lane)
      }
    }
    if isFaulty { faults += 1 }
    compareResult(sender.failure, lane)
    if let extra = lanes[lane].frame(within: 0) { differ("the kernel also sends \(extra.candumpText)") }
  }

  private mutating func sendControl(_ control: ISOTPFlowControl, _ sender: inout ISOTPSender, _ virtual: Instant, _ lane: Int) {
    let status = control.status == .reserved ? UInt8(3 + roll(13)) : control.status.rawValue
    let frame = CANFrame(lanes[lane].identifier(3), [0x30 | status, control.blockSize, control.separation])
    frameCount += 1
    log.append((true, frame))
    guard case .flowControl(let parsed)? = frame.isotp() else { differ("\(frame.candumpText) is no flow control") }
    sender.receive(parsed, at: virtual)
    lanes[lane].send(frame)
  }

  /// Requires that the kernel sends the frames that the project's sender sends until it waits.
  private mutating func compareFrames(_ sender: inout ISOTPSender, _ virtual: inout Instant, _ lane: Int) {
    while true {
      while let frame = sender.next(at: virtual) {
        frameCount += 1
        let found = lanes[lane].frame(within: Self.maxWait)
        log.append((false, found))
        if found != frame { differ("the kernel sends \(found?.candumpText ?? "nothing") instead of \(frame.candumpText)") }
      }
      // The next frame is due after the separation time; a flow control only after a second.
      guard let deadline = sender.deadline, deadline - virtual < 500 * .millisecond else { return }
      virtual = deadline
    }
  }

  private func compareResult(_ failure: ISOTPSender.Failure?, _ lane: Int) {
    let wanted: CInt =
      switch failure {
      case .overflow: EMSGSIZE
      case .noFlowControl: ECOMM
      // The kernel ends the message without an error.
      case nil, .invalidStatus: 0
      case .wrongLength, .tooManyWaits: differ("the project's sender fails: \(failure?.message ?? "")")
      }
    var (code, length): (CInt, socklen_t) = (0, socklen_t(MemoryLayout<CInt>.size))
    // An error can follow a moment later.
    let begun = now()
    if wanted != 0 { _ = lanes[lane].kernelSender.wait(Self.maxWait) }
    getsockopt(lanes[lane].kernelSender.descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
    if code != wanted { differ("the kernel reports \(code) instead of \(wanted) after \((now() - begun) / .millisecond) ms") }
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
      "exchanges \(count) received \(oracle.received) sent \(oracle.sent) faults \(oracle.faults) timeouts \(oracle.timeouts) frames \(oracle.frameCount)"
    )
  }
}
