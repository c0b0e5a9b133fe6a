// The freeze frames of all ECUs (SAE J1979, service 02): the trouble code and every known value. Each ECU is queried for its supported PIDs
// and then for their values: on CAN three PIDs per request, or one if that fails. Only complete responses count. An ECU may have no frame,
// or may not support the service.

struct FreezeFrameQuery: MultiECUQuery {
  static let columns = ["ecu", "frame", "code", "name", "value", "unit"]
  /// SAE J1979 defines frame 0 only; manufacturers may have more.
  private static let maxFrames: UInt8 = 8

  /// The purpose of a request.
  private enum Purpose: Equatable {
    case code
    case bitmap(UInt8)
    case values([UInt8])
  }

  private struct Request: Equatable {
    let frame: UInt8
    let purpose: Purpose
    let target: Target?

    var bytes: [UInt8] {
      switch purpose {
      case .code: FreezeFrame.request(0x02, frame: frame)
      case .bitmap(let base): FreezeFrame.request(base, frame: frame)
      case .values(let numbers): [0x02] + numbers.flatMap { [$0, frame] }
      }
    }
  }

  private struct Frame {
    let source: UInt32?
    let number: UInt8
    let code: TroubleCode
    fileprivate(set) var items: [FreezeFrame.Item] = []
  }

  private let isCAN: Bool
  private let scales: Scales
  /// The requests; responses append more.
  private var plan = [Request(frame: 0, purpose: .code, target: nil)]
  private var frames: [Frame] = []
  private var isAnswered = false
  private var problems: [String] = []

  init(isCAN: Bool, scales: Scales = Scales()) {
    self.isCAN = isCAN
    self.scales = scales
  }

  var requests: [[UInt8]] { plan.map(\.bytes) }
  func target(of index: Int) -> Target? { plan[index].target }
  var isLong: Bool { true }
  var abortError: CommandError? { nil }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable) {
    let request = plan[index]
    switch request.purpose {
    case .code: try addFrames(answers, request.frame)
    case .bitmap(let base): addValueRequests(answers, base, request)
    case .values(let numbers): addValues(answers, numbers, request)
    }
  }

  mutating func handleUnusableReply(to index: Int, _ reason: String) -> Bool {
    let request = plan[index]
    if case .values(let numbers) = request.purpose, numbers.count > 1 {
      addSingleRequests(numbers, request)
    } else {
      problems.append("frame \(request.frame): \(spacedHex(request.bytes)): \(reason)")
    }
    return true
  }

  /// Adds the frames whose codes ECUs report, and requests their supported PIDs and the next frame.
  private mutating func addFrames(_ answers: [ECUAnswer], _ frame: UInt8) throws(Unreadable) {
    let previousCount = frames.count
    for (source, message) in answers.failedECUs where frame == 0 {
      problems.append(ECUAnswer.message(source, "does not report its freeze frame: \(message)"))
    }
    for answer in answers where answer.isPositive {
      isAnswered = true
      var parsed = FreezeFrame()
      if let problem = parsed.add(answer.bytes[...]) { throw Unreadable(problem) }
      guard let code = parsed.code, parsed.frame == frame else { continue }
      frames.append(Frame(source: answer.source, number: frame, code: code))
    }
    guard frames.count > previousCount else { return }
    for found in frames[previousCount...] { addRequest(.bitmap(0), frame, found.source) }
    if frame + 1 < Self.maxFrames { plan.append(Request(frame: frame + 1, purpose: .code, target: nil)) }
  }

  /// Requests the PIDs in the bitmaps that ECUs report.
  private mutating func addValueRequests(_ answers: [ECUAnswer], _ base: UInt8, _ request: Request) {
    for answer in answers where answer.bytes.count == 7 && answer.bytes.starts(with: [0x42, base, request.frame]) {
      let numbers = StandardParameter.supported(answer.bytes[3...], base: base)
      let values = numbers.filter { $0 % 0x20 != 0 && $0 != 0x02 && StandardParameter.all[$0] != nil }
      let maxPIDs = isCAN ? 3 : 1
      for start in stride(from: 0, to: values.count, by: maxPIDs) {
        addRequest(.values(Array(values[start..<min(start + maxPIDs, values.count)])), request.frame, answer.source)
      }
      if base < 0xE0, numbers.contains(base + 0x20) { addRequest(.bitmap(base + 0x20), request.frame, answer.source) }
    }
  }

  /// Adds the values that ECUs report. PIDs that were not answered together are requested one by one.
  private mutating func addValues(_ answers: [ECUAnswer], _ numbers: [UInt8], _ request: Request) {
    var missing = Set(numbers)
    for answer in answers where answer.isPositive {
      var parsed = FreezeFrame()
      var received: [UInt8] = []
      let problem = StandardParameter.split(answer.bytes[...], where: numbers.contains) { number, _ in received.append(number) }
      guard problem == nil, parsed.add(answer.bytes[...], scales, from: answer.source) == nil, parsed.frame == request.frame,
        let index = frames.firstIndex(where: { $0.source == answer.source && $0.number == request.frame })
      else { continue }
      frames[index].items += parsed.items
      missing.subtract(received)
    }
    if numbers.count > 1, !missing.isEmpty { addSingleRequests(numbers.filter(missing.contains), request) }
  }

  private mutating func addSingleRequests(_ numbers: [UInt8], _ request: Request) {
    for number in numbers { plan.append(Request(frame: request.frame, purpose: .values([number]), target: request.target)) }
  }

  /// Queries the ECU of this source. On pre-CAN protocols, queries all ECUs, but only once.
  private mutating func addRequest(_ purpose: Purpose, _ frame: UInt8, _ source: UInt32?) {
    let target = isCAN ? source.flatMap { Target(respondingFrom: CANIdentifier($0)) } : nil
    let request = Request(frame: frame, purpose: purpose, target: target)
    if !plan.contains(request) { plan.append(request) }
  }

  var report: Report {
    let rows = frames.sorted { ($0.source ?? 0, $0.number) < ($1.source ?? 0, $1.number) }.flatMap { frame -> [[String]] in
      let head = [ReplyReader.name(of: frame.source), String(frame.number), frame.code.text]
      if frame.items.isEmpty { return [head + ["", "", ""]] }
      return frame.items.map { item in
        let value = if case .list(let entries) = item.value { entries.joined(separator: "; ") } else { item.value.text }
        return head + [item.name, value, item.unit ?? ""]
      }
    }
    var lines = problems
    if rows.isEmpty {
      lines.append(
        isAnswered ? "no freeze frame is stored" : "no freeze frame: no ECU responds to service 02, which not every vehicle supports")
    }
    return Report(text: lines.isEmpty ? nil : lines.joined(separator: "\n"), columns: rows.isEmpty ? [] : Self.columns, rows: rows)
  }
}
