// Torq's board seen from its host: the Arduino between an HM-10 and a VESC. As built its loop takes one byte a pass and
// answers it; as documented it begins and sends again on every answer, or when none comes. This file owns the loop and what
// the board keeps; BoardRide the ride, BoardFault what goes wrong. It must never know what its host makes of it.
// Facts: ProjectTORQ.ino (passes, control bytes, latches, the 64-byte SoftwareSerial buffer); the seed for `documented`.

import Protocols

/// A simulated longboard that speaks ELComm.
public struct ArduinoBoard: Machine {
  /// Who begins.
  public enum Dialect: String, CaseIterable, Sendable {
    case asBuilt = "as-built"
    case documented
  }

  public let schema = Schema()
  let dialect: Dialect
  let faults: [BoardFault]
  /// Nothing takes time.
  let isInstant: Bool
  /// What a documented board takes for buzzer on.
  let buzzerOn: [UInt8]
  private let ride = BoardRide()
  private let origin: Instant
  private var noise: Noise
  private var outbox = AdapterOutbox(baud: nil)
  /// The buzzer's control byte says on; nothing but another byte, or a reset, ends it.
  private(set) public var isBuzzerLatched = false
  private(set) public var isLatchedOff = false
  private var bootedAt: Instant
  /// Bytes that wait for a pass of the loop.
  private var heard: [UInt8] = []
  private var passEnds: Instant?
  /// When a documented board speaks again by itself.
  private var repeats: Instant?
  private var messages = 0
  private var struck: Set<Int> = []
  private var silentUntil: Instant = .min
  private var heldBack: [UInt8] = []
  private var isUp = false
  private var hangsUp = false
  private var wasSounding = false

  private static let mostHeard = 64
  private static let pass: Nanoseconds = 95 * .millisecond
  private static let passWithoutVESC: Nanoseconds = 185 * .millisecond
  private static let repeatAfter: Nanoseconds = 600 * .millisecond

  /// A board whose ride began at `origin`; `seed` chooses the noise of its faults.
  public init(
    _ dialect: Dialect = .asBuilt, origin: Instant = 0, isInstant: Bool = false, buzzerOn: Int = 1, faults: [BoardFault] = [],
    seed: UInt64 = 1
  ) {
    self.dialect = dialect
    self.origin = origin
    self.isInstant = isInstant
    self.buzzerOn = Array(String(buzzerOn).utf8)
    self.faults = faults
    noise = Noise(seed: seed)
    bootedAt = origin
  }

  /// The buzzer sounds only while the VESC answers and the board is not latched off.
  public var isSounding: Bool { isBuzzerLatched && !isLatchedOff && !suffers(.noVESC) }

  public var nextWake: Instant? { [outbox.nextDue, passEnds, repeats].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): linkCameUp(at: now)
    case .linkChanged(.main, .down): unplug(at: now)
    case .received(.main, let bytes): hear(bytes, at: now)
    case .sent(let id, let failure):
      outbox.sent(id)
      if failure != nil { outbox.clear(at: now) }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated board takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    runLoop(at: now)
    outbox.flush(at: now, &effects)
    if isSounding != wasSounding {
      wasSounding = isSounding
      effects.append(.event(name: "buzzer", text: isSounding ? "the buzzer sounds" : "the buzzer is silent"))
    }
    if hangsUp, outbox.isEmpty, !outbox.isSending {
      hangsUp = false
      effects.append(.resetLink(.main, reason: "the board was switched off"))
    }
  }

  private mutating func linkCameUp(at now: Instant) {
    unplug(at: now)
    isUp = true
    if dialect == .documented { passEnds = now + pass }
  }

  /// The latches outlive the link.
  private mutating func unplug(at now: Instant) {
    outbox.reset(at: now)
    heard = []
    heldBack = []
    (passEnds, repeats, isUp, hangsUp) = (nil, nil, false, false)
  }

  private var pass: Nanoseconds { isInstant ? 0 : suffers(.noVESC) ? ArduinoBoard.passWithoutVESC : ArduinoBoard.pass }

  private mutating func hear(_ bytes: [UInt8], at now: Instant) {
    heard += bytes.prefix(ArduinoBoard.mostHeard - heard.count)
    guard !heard.isEmpty, passEnds == nil, isUp else { return }
    (passEnds, repeats) = (now + pass, nil)
  }

  /// The passes that have ended by now.
  private mutating func runLoop(at now: Instant) {
    if let repeats, now >= repeats, passEnds == nil { passEnds = now }
    guard let end = passEnds, now >= end else { return }
    switch dialect {
    case .asBuilt:
      guard !heard.isEmpty else { return passEnds = nil }
      let control = heard.removeFirst()
      if control == 55 { isBuzzerLatched = true } else if control == 45 { isBuzzerLatched = false }
      speak(at: now)
      // One byte a pass; those that piled up are answered in the next ones.
      passEnds = heard.isEmpty ? nil : now + pass
    case .documented:
      if !heard.isEmpty { isBuzzerLatched = heard == buzzerOn }
      heard = []
      passEnds = nil
      repeats = now + ArduinoBoard.repeatAfter
      speak(at: now)
    }
  }

  // MARK: What it says

  private func seconds(_ now: Instant) -> Double { Double(now - origin) / 1e9 }

  private func message(at now: Instant) -> String {
    let distance = ride.distance(seconds(now)) - ride.distance(seconds(bootedAt))
    let hundredths = Int(distance * 100)
    let miles = "\(hundredths < 0 ? "-" : "")\(abs(hundredths) / 100).\(abs(hundredths) / 10 % 10)\(abs(hundredths) % 10)"
    if suffers(.noVESC) { return "255$255$0$\(miles)" }
    let volts = now - bootedAt < .second / 2 ? -1 : Int(BoardRide.voltage(seconds(now)))
    let battery = isLatchedOff ? 0 : (volts - 31) * 100 / 9
    let fields = "\(Int(BoardRide.speed(seconds(now))))$\(battery)$\(isLatchedOff ? 0 : 1)$\(miles)"
    return suffers(.extension) ? fields + "$\(volts)$ok" : fields
  }

  private mutating func speak(at now: Instant) {
    guard now >= silentUntil else { return }
    messages += 1
    if strike(.reset, at: now) != nil { (bootedAt, isBuzzerLatched, isLatchedOff) = (now, false, false) }
    if strike(.offLatch, at: now) != nil { isLatchedOff = true }
    if let fault = strike(.silence, at: now) { silentUntil = fault.time.map { now + $0 } ?? .max }
    guard now >= silentUntil else { return }
    say(Array(message(at: now).utf8), at: now)
  }

  private mutating func say(_ text: [UInt8], at now: Instant) {
    var bytes = text
    if strike(.noise, at: now) != nil { bytes = (0..<6).map { _ in UInt8.random(in: 0x80...0xFF, using: &noise) } + bytes }
    if strike(.cut, at: now) != nil { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &noise)) }
    if suffers(.wrongBaud) { bytes = bytes.map { $0 &* 37 | 0x80 } }
    if strike(.flood, at: now) != nil { bytes = [[UInt8]](repeating: bytes, count: 200).flatMap(\.self) }
    if heldBack.isEmpty, strike(.coalesce, at: now) != nil { return heldBack = bytes }
    bytes = heldBack + bytes
    heldBack = []
    if strike(.disconnect, at: now) != nil {
      hangsUp = true
      return outbox.add(Array(bytes.prefix(bytes.count / 2)), at: now)
    }
    guard suffers(.split) else { return outbox.add(bytes, at: now) }
    let cut = Int.random(in: 1..<bytes.count, using: &noise)
    outbox.add(Array(bytes[..<cut]), at: now)
    outbox.add(Array(bytes[cut...]), at: now + 15 * .millisecond)
  }

  private func suffers(_ kind: BoardFault.Kind) -> Bool { faults.contains { $0.kind == kind } }

  /// The fault of this kind that strikes the running message, if one does.
  private mutating func strike(_ kind: BoardFault.Kind, at now: Instant) -> BoardFault? {
    for (index, fault) in faults.enumerated() where fault.kind == kind {
      switch fault.moment {
      case .always: return fault
      case .every(let count): if messages % count == 0 { return fault }
      case .after(let time): if now - origin >= time, struck.insert(index).inserted { return fault }
      }
    }
    return nil
  }
}
