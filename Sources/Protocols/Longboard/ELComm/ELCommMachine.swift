// The `longboard` machine for Torq's Arduino and its ELComm protocol. In the as-built dialect, the host sends one byte and the board
// responds. In the documented dialect, the board sends and the host responds with the number that switches the buzzer. At most one byte or
// response is in flight, and off is the first message on a new link. Values that the board marks as unknown are absent. The machine passes
// inputs to its components, and the results of one component to the others.
// Source: ProjectTORQ.ino; the app's ELCommunicationProtocol.swift, BLEDevice.swift; the project's protocol description for `documented`.

/// Communicates with a longboard over ELComm.
public struct ELCommMachine: Machine {
  public let schema: Schema
  let settings: ELCommSettings
  private(set) var dialogue: ELCommDialogue
  private var buzzer: ELCommBuzzer
  private var store: ELCommStore

  /// Creates a machine; throws for an invalid option.
  public init(_ setup: Setup) throws(OptionError) {
    settings = try ELCommSettings(setup)
    dialogue = ELCommDialogue(settings)
    buzzer = ELCommBuzzer(limit: settings.buzzerLimit)
    schema = Schema(properties: ELCommProperty.properties(period: settings.period), actions: [ELCommBuzzer.action])
    store = ELCommStore(schema.properties, device: setup.device)
  }

  public var nextWake: Instant? {
    let buzzerWake = dialogue.unavailability == nil ? buzzer.nextWake : nil
    return [store.nextWake, buzzerWake, dialogue.nextWake(buzzer.target)].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be sent over a lost link.
    case .linkChanged(.main, _), .stopping: break
    default:
      buzzer.expire(at: now, &effects)
      finish(dialogue.expire(buzzer.target, at: now, &effects), at: now, &effects)
    }
    switch input {
    case .started(let values, _): dialogue.restore(store.restore(values, &effects), &effects)
    case .linkChanged(.main, .up):
      buzzer.reset(.notConnected("the link was reopened"), &effects)
      dialogue.linkCameUp(buzzer.target, at: now, &effects)
    case .linkChanged(.main, .down(let reason)):
      dialogue.linkWentDown(reason, &effects)
      buzzer.reset(.notConnected(reason), &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .sent(let id, let failure):
      guard let change = dialogue.writeEnded(id, failure, at: now, &effects) else { break }
      buzzer.confirmed(change, at: now, &effects)
      buzzer.publish(&effects)
    case .stored(let key, let failure): store.stored(key, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id):
      buzzer.cancel(id)
      store.cancel(id)
    case .stopping:
      store.storeNow(&effects)
      let isOff = buzzer.confirmedState == false && !buzzer.isOn
      if dialogue.stop(isOff: isOff, at: now, &effects) { buzzer.reset(.notConnected("the link is being closed"), &effects) }
    case .wake, .linkChanged, .received, .observed, .response, .rows, .time, .leaseBegan, .leaseEnded: break
    }
    dialogue.advance(buzzer.target, at: now, &effects)
    store.advance(at: now, &effects)
    buzzer.updateLastWill(isUp: dialogue.isUp, off: dialogue.off, &effects)
  }

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard dialogue.beginReceiving(at: now) else { return }
    var hasMessage = false
    for byte in bytes {
      guard let message = dialogue.decode(byte, at: now) else { continue }
      hasMessage = true
      store.read(distance: message.distance, at: now)
      finish(dialogue.received(buzzer.target, at: now, &effects), at: now, &effects)
    }
    dialogue.endReceiving(hasMessage: hasMessage, at: now, &effects)
    if hasMessage { buzzer.publish(&effects) }
  }

  /// Passes the outcome of an event to the other components.
  private mutating func finish(_ outcome: ELCommDialogue.Outcome, at now: Instant, _ effects: inout Effects) {
    if let change = outcome.confirmed { buzzer.confirmed(change, at: now, &effects) }
    if let dialect = outcome.detected { store.store(dialect: dialect, &effects) }
    if let reason = outcome.lostLink { buzzer.reset(.notConnected(reason), &effects) }
  }

  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      let request: ELCommBuzzer.Request
      switch command {
      case .set(property: ELCommProperty.name.rawValue, .string(let name)): return try store.set(name: name, for: id, &effects)
      case .set(property: ELCommProperty.buzzer.rawValue, .bool(let on)): request = on ? .on : .off
      case .run(action: 0, let arguments): request = try buzzer.request(arguments)
      default: throw .refused(code: .notSupported, "no such action")
      }
      if let reason = dialogue.unavailability { throw .notConnected(reason) }
      buzzer.perform(id, request, at: now, &effects)
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }
}
