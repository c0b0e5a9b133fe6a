// The characteristics to use for notifications and writes: those in the link's URL, otherwise those of the kind's first profile that
// the peripheral has. If the URL names a service and no profile matches, the first suitable characteristics of that service are used.

import Protocols

struct GATTChoice {
  /// nil if the peer sends no notifications.
  let notify: Characteristic?
  /// nil if the peer is read-only.
  let write: Characteristic?
  /// Whether to use writes with response.
  let isAcknowledged: Bool

  /// Selects the characteristics. The error states what is missing and lists what the peripheral has.
  init(_ target: BLETarget, _ description: PeripheralDescription, among all: [Characteristic]) throws(ValueError) {
    let candidates: [(GATTUUID?, GATTUUID?, GATTUUID?)] =
      target.write.map { [(target.service, target.notify, $0)] }
      ?? description.profiles.filter { $0.service == target.service ?? $0.service }
      .map { ($0.service, $0.notify, $0.write) }
    for (service, notify, write) in candidates {
      let inService = all.filter { $0.service == service ?? $0.service }
      let writer = write.flatMap { uuid in inService.first { $0.uuid == uuid } }
      if write != nil, writer == nil { continue }
      let notifier = notify.flatMap { uuid in inService.first { $0.uuid == uuid } }
      if let notify, notifier == nil {
        guard target.write == nil else { throw ValueError("no characteristic \(notify); \(Self.inventory(all))") }
        continue
      }
      guard writer != nil || notifier != nil else { continue }
      try self.init(notifier ?? (target.write != nil ? Self.notifier(beside: writer, inService) : nil), writer, target, description)
      return
    }
    if let write = target.write {
      throw ValueError("no characteristic \(write)\(target.service.map { " in service \($0)" } ?? ""); \(Self.inventory(all))")
    }
    guard let service = target.service else {
      throw ValueError("no known service for this kind; \(Self.inventory(all)): set service=, notify= and write=")
    }
    let inService = all.filter { $0.service == service }
    if description.isNotifyOnly {
      guard let notifier = Self.notifier(beside: nil, inService) else {
        throw ValueError("no characteristic with notify in service \(service); \(Self.inventory(all))")
      }
      try self.init(notifier, nil, target, description)
      return
    }
    guard let writer = inService.first(where: \.isWritable) else {
      throw ValueError("no writable characteristic in service \(service); \(Self.inventory(all))")
    }
    try self.init(Self.notifier(beside: writer, inService), writer, target, description)
  }

  private init(
    _ notify: Characteristic?, _ write: Characteristic?, _ target: BLETarget, _ description: PeripheralDescription
  ) throws(ValueError) {
    if let notify, notify.flags.isDisjoint(with: ["notify", "indicate"]) {
      throw ValueError("characteristic \(notify.uuid) does not support notify: it has \(notify.properties)")
    }
    self.notify = notify
    self.write = write
    guard let write else {
      isAcknowledged = false
      return
    }
    guard write.isWritable else { throw ValueError("characteristic \(write.uuid) is not writable: it has \(write.properties)") }
    let (acknowledged, unacknowledged) = (write.flags.contains("write"), write.flags.contains("write-without-response"))
    if let response = target.response, response ? !acknowledged : !unacknowledged {
      throw ValueError("characteristic \(write.uuid) has only \(write.properties): remove response=")
    }
    isAcknowledged = target.response ?? (description.prefersAcknowledgedWrites ? acknowledged : !unacknowledged)
  }

  /// The first characteristic that can notify or indicate, preferably the writable one itself.
  private static func notifier(beside writer: Characteristic?, _ all: [Characteristic]) -> Characteristic? {
    ([writer].compactMap(\.self) + all).first { !$0.flags.isDisjoint(with: ["notify", "indicate"]) }
  }

  /// The services and characteristics of the peripheral, for messages. Limited, because a hostile peripheral may have thousands.
  private static func inventory(_ all: [Characteristic]) -> String {
    var services: [GATTUUID] = []
    for service in all.map(\.service) where !services.contains(service) { services.append(service) }
    if services.isEmpty { return "it has no characteristics" }
    let names = services.prefix(6).map { service in
      "\(service) (\(all.filter { $0.service == service }.prefix(6).map { "\($0.uuid)" }.joined(separator: ", ")))"
    }
    return "it has \(names.joined(separator: ", "))" + (services.count > 6 ? " and more" : "")
  }
}

extension Characteristic {
  var isWritable: Bool { !flags.isDisjoint(with: ["write", "write-without-response"]) }
  /// `read, notify`, or `no properties`.
  fileprivate var properties: String { flags.isEmpty ? "no properties" : flags.sorted().prefix(8).joined(separator: ", ") }
}
