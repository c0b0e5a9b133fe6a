// Searches for devices for `setup`: with a scan by the daemon, and at the usual addresses on the local network. The user then chooses from
// a numbered list, in which links that are already configured are marked.

import Glibc
import Protocols
import Varlink

struct DeviceSearch {
  let common: CommonOptions
  let output: Output
  /// The duration of the scan in seconds.
  let seconds: Int
  /// The configured devices.
  let devices: [Contract.Device]

  /// Seconds for which the scan continues after the first new device was recognised.
  private static let grace = 3.0
  /// The maximum number of listed devices of unknown kind.
  private static let maxUnknown = 12

  /// The candidate for a URL that the user gave; throws if a device has this link.
  func candidate(of url: String) throws(Failure) -> Candidate {
    let candidate = try Candidate(url: url)
    if let owner = owner(of: candidate) { throw Self.alreadyConfigured(url, owner) }
    return candidate
  }

  /// Scans for the Bluetooth device to which this link leads. Returns its kind, which the daemon recognises by its name and services; nil
  /// if the device is not in range or not recognised.
  func kind(of url: String) throws -> String? {
    Interrupt.catchSignals()
    defer { output.progress(nil) }
    let (client, end) = (try common.connect(output), Clock.monotonic + Double(seconds))
    var kind: String?
    try scanBluetooth {
      try client.stream(
        Contract.Scan.self, .init(transport: "ble", seconds: seconds), firstReply: nil, tick: 0.5, laterReplies: nil
      ) { result in
        if Interrupt.received { throw Failure.other("interrupted") }
        if let found = result?.found.map(Candidate.init), LinkText.leads(url, to: found) { kind = found.kind }
        let left = max(0, end - Clock.monotonic)
        output.progress("looking for \(LinkText.readable(url)): \(Int(left.rounded(.up))) s left")
        return kind == nil && result?.searching ?? true && left > 0
      }
    }
    return kind
  }

  /// Runs a scan. If Bluetooth is unavailable, prints the reason as a note.
  private func scanBluetooth(_ scan: () throws -> Void) throws {
    do { try scan() } catch Failure.rejected(.deviceError("", _, let message)) {
      output.progress(nil)
      output.note("Bluetooth was not searched: \(Output.oneLine(message))")
    }
  }

  private static func alreadyConfigured(_ link: String, _ owner: String) -> Failure {
    .usage("\(link) is already configured as device \(owner); connect it: vehiclectl connect \(owner)")
  }

  /// The device that uses this link.
  private func owner(of candidate: Candidate) -> String? {
    devices.first { $0.links.contains { LinkText.leads($0, to: candidate) } }?.name
  }

  /// Searches and lets the user choose, until a new device is chosen. A recognised device is chosen without asking if it is the only new
  /// one. Returns nil if the user quits.
  func choose(_ dialogue: SetupDialogue) throws -> Candidate? {
    while true {
      let all = try search().arranged
      let unknown = all.filter { $0.kind == nil && $0.transport == "ble" }
      let candidates = Array(all.filter { !unknown.contains($0) } + unknown.prefix(Self.maxUnknown))
      let recognised = candidates.filter { $0.kind != nil && owner(of: $0) == nil }
      if !output.json { output.lines(list(candidates)) }
      if unknown.count > Self.maxUnknown { output.note("\(unknown.count - Self.maxUnknown) more Bluetooth devices: vehiclectl scan ble") }
      if candidates.isEmpty { output.note("nothing found: power on the device, and close other apps that use it") }
      if dialogue.acceptsDefaults { return try only(recognised, among: candidates) }
      let fresh = candidates.filter { owner(of: $0) == nil }
      if fresh.count == 1, recognised.count == 1 { return fresh[0] }
      let fallback = recognised.first.flatMap { candidates.firstIndex(of: $0) }.map { $0 + 1 }
      switch try chosen(from: candidates, default: fallback, dialogue) {
      case .candidate(let candidate): return candidate
      case .again: continue
      case .quit: return nil
      }
    }
  }

  private enum Answer {
    case candidate(Candidate)
    case again
    case quit
  }

  private func chosen(from candidates: [Candidate], default fallback: Int?, _ dialogue: SetupDialogue) throws(Failure) -> Answer {
    while true {
      switch try dialogue.choose(of: candidates.count, default: fallback) {
      case .again where dialogue.isAtTerminal: return .again
      case .again, .invalid: throw .usage("no device chosen; enter its number")
      case .quit: return .quit
      case .number(let number):
        let candidate = candidates[number - 1]
        guard let owner = owner(of: candidate) else { return .candidate(candidate) }
        let failure = Self.alreadyConfigured(candidate.address, owner)
        guard dialogue.isAtTerminal else { throw failure }
        dialogue.remark(Output.oneLine(failure.message))
      }
    }
  }

  /// The only recognised device, for --yes. Prefers a vehicle or sensor to gpsd, which may run for other programs.
  private func only(_ recognised: [Candidate], among candidates: [Candidate]) throws(Failure) -> Candidate {
    let others = recognised.filter { $0.kind != "position" }
    if let only = others.isEmpty ? recognised.first : others.first, recognised.count == 1 || others.count == 1 { return only }
    let links = recognised.compactMap { candidate in
      candidate.kind.flatMap { SetupKind[$0] }.map { candidate.link(kind: $0) }
    }
    guard links.isEmpty else {
      throw .usage("several devices found: \(links.joined(separator: ", ")); name one: vehiclectl setup --yes LINK")
    }
    throw .other(
      "no new device recognised; power it on, or name its link: vehiclectl setup --yes LINK, as in serial:/dev/ttyUSB0 or ble:Veepeak")
  }

  /// The numbered list.
  private func list(_ candidates: [Candidate]) -> [String] {
    var table = Table(">", "kind", "name", "address", ">signal", "")
    for (index, candidate) in candidates.enumerated() {
      let remark = owner(of: candidate).map { Cell("configured as \($0)", .dim) } ?? ""
      table.rows.append([Cell("\(index + 1)")] + candidate.cells + [remark])
    }
    return table.lines(paint: output.paint)
  }

  /// Scans for devices of every transport.
  private func search() throws -> [Candidate] {
    Interrupt.catchSignals()
    output.progress("looking for adapters and gpsd")
    defer { output.progress(nil) }
    var found = NetworkProbe.candidates { owner(of: $0) != nil } + CANInterfaces.candidates()
    let client = try common.connect(output)
    var end = Clock.monotonic + Double(seconds)
    try scanBluetooth {
      try client.stream(Contract.Scan.self, .init(seconds: seconds), firstReply: nil, tick: 0.5, laterReplies: nil) { result in
        if Interrupt.received { throw Failure.other("interrupted") }
        if let discovery = result?.found {
          let candidate = Candidate(discovery)
          found.note(candidate)
          if candidate.kind != nil, owner(of: candidate) == nil { end = min(end, Clock.monotonic + Self.grace) }
        }
        let left = max(0, end - Clock.monotonic)
        output.progress("scanning: \(found.count) found, \(Int(left.rounded(.up))) s left")
        return result?.searching ?? true && left > 0
      }
    }
    return found
  }
}
