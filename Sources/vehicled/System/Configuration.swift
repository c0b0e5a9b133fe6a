// What the administrator wants, checked: how the socket is shared and which devices there are. A value without an opinion
// on files or messages; a reload compares two of them, device by device. The keys stand in ConfigurationKeys.

import Logging
import Protocols

struct Configuration: Equatable, Sendable {
  /// The control socket and who may use it.
  struct Control: Equatable, Sendable {
    /// A path other than the usual one.
    var socket: String?
    /// Groups that may see.
    var observe: [String] = ["vehicled"]
    /// Groups that may also set, call and drive.
    var control: [String] = ["vehicled"]
    /// Users beside them, by name or number.
    var observeUsers: [String] = []
    var controlUsers: [String] = []
    /// Not the lists decide, but polkit.
    var asksPolkit = false

    /// Whether others than the members of group `vehicled` may be let in.
    var namesOthers: Bool {
      asksPolkit || !observeUsers.isEmpty || !controlUsers.isEmpty || (observe + control).contains { $0 != "vehicled" }
    }
  }

  /// One device. Equal devices need not be touched by a reload.
  struct Device: Equatable, Sendable {
    var name: String
    /// The name of a known kind.
    var kind: String
    var links: [LinkName: LinkURL]
    /// Checked, with the kind's defaults filled in.
    var options: [String: Value]
    /// What is in the files that its keys name; another secret makes it another device.
    var secrets: [String: SecretBytes] = [:]
    /// Its subsections, by the section's name.
    var sections: [String: [Setup.Subsection]] = [:]
    /// Every byte of its links is recorded under the state directory.
    var record = false

    /// What its machine is made from.
    var setup: Setup {
      Setup(device: name, options: options, secrets: secrets, sections: sections, links: links.mapValues { "\($0)" })
    }
  }

  var logLevel: Logger.Level?
  var control = Control()
  /// In the order of the file.
  var devices: [Device] = []
}

extension Configuration {
  static let defaultPath = "/etc/vehicled/vehicled.toml"

  /// Reads FILE, then FILE.d/*.toml in the order of their names; tables merge key by key and the later file wins. Then what the
  /// kinds' folders beside FILE hold. All that is wrong in any of them is reported at once.
  static func load(_ path: String = defaultPath, kinds: [Kind]) throws(ConfigurationError) -> Configuration {
    var root = TOML.Table()
    var problems: [ConfigurationProblem] = []
    do {
      for file in try ConfigurationFile.all(of: path) {
        do throws(ConfigurationProblem) {
          root.merge(try file.table())
        } catch {
          problems.append(error)
        }
      }
    } catch {
      problems.append(error)
    }
    var check = ConfigurationCheck(kinds: kinds, complete: problems.isEmpty)
    for folder in Set(kinds.flatMap(\.sections).compactMap(\.folder)).sorted() {
      do {
        for file in try ConfigurationFile.all(in: folder, beside: path) {
          do throws(ConfigurationProblem) {
            check.shared[folder, default: []].append(try file.table())
          } catch {
            problems.append(error)
          }
        }
      } catch {
        problems.append(error)
      }
    }
    let configuration = check.configuration(root)
    problems += check.problems
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return configuration
  }
}
