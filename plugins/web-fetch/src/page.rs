//! From HTML to Markdown: the part of the page that is meant, without what surrounds it, its links absolute.
//!
//! A hostile page nests a hundred thousand deep. Parsing by the rules of HTML takes the square of the depth, so what nests
//! past [`PARSED`] is not parsed at all. The tree is walked with a stack of its own, never by recursion; below [`DEEPEST`]
//! only the text is kept, so that the converter, which does recurse, never meets such a tree.

use fluent_uri::{Uri, UriRef};
use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, Options};
use html5ever::Attribute;
use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Node, NodeData};
use std::rc::Rc;

/// Nesting that real pages stay far below, and that a converter's stack holds.
const DEEPEST: usize = 200;

/// Nesting that is still parsed.
const PARSED: usize = 1_000;

/// Elements that are no text of a page. `title` is shown on its own.
const NOISE: [&str; 24] = [
    "script", "style", "noscript", "template", "title", "nav", "aside", "footer", "iframe", "object", "embed",
    "canvas", "svg", "button", "input", "select", "textarea", "dialog", "link", "meta", "video", "audio", "map",
    "datalist",
];

/// A part of a page this much smaller than the whole is not what is meant, whatever it is called.
const TOO_SMALL: usize = 20;

/// A page, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its title, on one line.
    pub title: String,
    /// Its text.
    pub markdown: String,
}

/// Reads a page that came from `url`.
pub fn read(html: &str, url: &str) -> Page {
    let converter = HtmlToMarkdown::builder()
        .options(Options {
            bullet_list_marker: BulletListMarker::Dash,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        })
        .build();
    if nests_past(html, PARSED) {
        return Page { title: String::new(), markdown: tidy(&without_tags(html)) };
    }
    let Ok(tree) = converter.html_to_tree(html) else { return Page::default() };
    let (title, base) = head(&tree, url);
    prune(&tree, &base);
    let meant = meant(&tree);
    let markdown = tidy(&converter.tree_to_markdown(&meant));
    Page { title, markdown }
}

/// Whether tags nest deeper than this, as well as it can be told without parsing: elements that people leave open, and
/// those that have no end, do not count.
fn nests_past(html: &str, most: usize) -> bool {
    const OPEN: [&str; 26] = [
        "area", "base", "br", "col", "dd", "dt", "hr", "img", "input", "li", "link", "meta", "optgroup", "option", "p",
        "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr", "html",
    ];
    let mut depth = 0_usize;
    for tag in html.split('<').skip(1) {
        let (ends, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len());
        if end == 0 || OPEN.contains(&tag[..end].to_ascii_lowercase().as_str()) {
            continue;
        }
        depth = if ends { depth.saturating_sub(1) } else { depth + 1 };
        if depth > most {
            return true;
        }
    }
    false
}

/// What stands between the tags.
fn without_tags(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// Name of an element in lower case; empty for anything else.
fn tag(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attribute| &*attribute.name.local == name).map(|attribute| attribute.value.to_string())
}

/// Every node below `root` in the order of the page.
fn walk(root: &Rc<Node>, mut seen: impl FnMut(&Rc<Node>)) {
    let mut stack = vec![root.clone()];
    while let Some(node) = stack.pop() {
        seen(&node);
        stack.extend(node.children.borrow().iter().rev().cloned());
    }
}

fn text_of(root: &Rc<Node>) -> String {
    let mut text = String::new();
    walk(root, |node| {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
    });
    text
}

/// Title and base address of the page.
fn head(tree: &Rc<Node>, url: &str) -> (String, String) {
    let (mut title, mut base) = (String::new(), None);
    walk(tree, |node| match tag(node) {
        "title" if title.is_empty() => title = text_of(node).split_whitespace().collect::<Vec<_>>().join(" "),
        "base" if base.is_none() => base = attribute(node, "href"),
        _ => {}
    });
    let base = base.and_then(|href| absolute(&href, url)).unwrap_or_else(|| url.to_owned());
    (title, base)
}

/// Takes out what is no text, makes links absolute, and flattens what is too deep.
fn prune(tree: &Rc<Node>, base: &str) {
    let mut stack = vec![(tree.clone(), 0)];
    while let Some((node, depth)) = stack.pop() {
        node.children.borrow_mut().retain(|child| !is_noise(child));
        if depth >= DEEPEST {
            let children = node.children.take();
            let text: String = children.iter().map(text_of).collect::<Vec<_>>().join(" ");
            let contents = StrTendril::from(text).into();
            node.children.borrow_mut().push(Node::new(NodeData::Text { contents }));
            continue;
        }
        if let NodeData::Element { name, attrs, .. } = &node.data {
            links(&name.local, &mut attrs.borrow_mut(), base);
        }
        stack.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
}

fn is_noise(node: &Node) -> bool {
    match &node.data {
        NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. } => true,
        NodeData::Element { .. } => {
            NOISE.contains(&tag(node))
                || attribute(node, "hidden").is_some()
                || attribute(node, "aria-hidden").is_some_and(|hidden| hidden == "true")
                || attribute(node, "role").is_some_and(|role| matches!(role.as_str(), "navigation" | "banner" | "search"))
                // Pictures that are written into the page are noise by the kilobyte.
                || (tag(node) == "img" && attribute(node, "src").is_none_or(|src| src.starts_with("data:")))
        }
        _ => false,
    }
}

fn links(tag: &str, attrs: &mut Vec<Attribute>, base: &str) {
    let name = match tag {
        "a" => "href",
        "img" => "src",
        _ => return,
    };
    for attribute in attrs.iter_mut().filter(|attribute| &*attribute.name.local == name) {
        if let Some(absolute) = absolute(&attribute.value, base) {
            attribute.value = absolute.into();
        }
    }
    // A link that only a script follows is its text.
    attrs.retain(|attribute| {
        &*attribute.name.local != name || !attribute.value.trim_start().to_ascii_lowercase().starts_with("javascript:")
    });
}

/// The address that a link leads to; none where it reads as no address, and then it stays as it is.
fn absolute(href: &str, base: &str) -> Option<String> {
    let href = href.trim().replace(' ', "%20");
    let link = UriRef::parse(href.as_str()).ok()?;
    let base = Uri::parse(base).ok()?;
    link.resolve_against(&base.strip_fragment()).ok().map(|uri| uri.to_string())
}

/// The part that a page calls its own: `main`, then a lone `article`, where it holds more than crumbs; else all of it.
fn meant(tree: &Rc<Node>) -> Rc<Node> {
    let (mut mains, mut articles) = (Vec::new(), Vec::new());
    walk(tree, |node| match tag(node) {
        "main" => mains.push(node.clone()),
        _ if attribute(node, "role").is_some_and(|role| role == "main") => mains.push(node.clone()),
        "article" => articles.push(node.clone()),
        _ => {}
    });
    let one = |found: Vec<Rc<Node>>| <[Rc<Node>; 1]>::try_from(found).ok().map(|[node]| node);
    let whole = text_of(tree).len();
    let part = one(mains).or_else(|| one(articles)).filter(|part| text_of(part).len() * TOO_SMALL >= whole);
    part.unwrap_or_else(|| tree.clone())
}

/// At most one blank line in a row, none at the ends, no blanks at line ends but those of a break.
fn tidy(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let (mut blank, mut fenced) = (0, false);
    for line in markdown.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if line.trim().is_empty() && !fenced {
            blank += 1;
            continue;
        }
        if !text.is_empty() {
            text.push_str(if blank > 0 { "\n\n" } else { "\n" });
        }
        blank = 0;
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(html: &str) -> String {
        read(html, "https://example.org/docs/page.html?x#y").markdown
    }

    #[test]
    fn a_page_becomes_its_text() {
        let page = read(
            "<!doctype html><html><head><title> Galaxies\n &amp; dust </title><style>p{}</style></head><body>\
             <nav><a href=/>Home</a></nav><main><h1>NGC 4258</h1><p>A <b>bold</b> one with <a href='m.html'>a link</a>.\
             <ul><li>one<li>two</ul><pre><code class=language-py>a = 1\n\n\nb = 2</code></pre>\
             <table><tr><th>Name<th>mag</tr><tr><td>M31<td>3.4</tr></table><button>Send</button>\
             <script>alert('no')</script></main><footer>imprint</footer></body></html>",
            "https://example.org/docs/",
        );
        assert_eq!(page.title, "Galaxies & dust");
        assert_eq!(
            page.markdown,
            "# NGC 4258\n\nA **bold** one with [a link](https://example.org/docs/m.html).\n\n- one\n- two\n\n```py\na = 1\n\n\n\
             b = 2\n```\n\n| Name | mag |\n| ---- | --- |\n| M31  | 3.4 |"
        );
    }

    #[test]
    fn links_are_absolute_and_scripts_are_none() {
        assert_eq!(
            markdown(
                "<a href='/a b?q=1&amp;r=2'>x</a> <a href=//c.org>y</a> <a href='#z'>z</a> <a href='JavaScript:go()'>w</a>"
            ),
            "[x](https://example.org/a%20b?q=1&r=2) [y](https://c.org) [z](https://example.org/docs/page.html?x#z) w"
        );
        assert_eq!(markdown("<base href='/other/'><a href=m>x</a>"), "[x](https://example.org/other/m)");
        assert_eq!(
            markdown("<img src='data:image/png;base64,AAAA' alt=d><img src=p.png alt=p>"),
            "![p](https://example.org/docs/p.png)"
        );
    }

    #[test]
    fn what_is_hidden_or_around_the_text_is_left_out() {
        assert_eq!(
            markdown(
                "<p>a<p hidden>b<div aria-hidden=true>c</div><div role=navigation>d</div><aside>e</aside><!-- f -->"
            ),
            "a"
        );
        let long = "words ".repeat(100);
        assert!(
            markdown(&format!("<main>x</main><div>{long}</div>")).contains("words"),
            "a main of crumbs is not meant"
        );
        assert!(!markdown(&format!("<article>{long}</article><div>around</div>")).contains("around"));
        assert!(markdown("<article>one</article><article>two</article>").contains("two"));
    }

    #[test]
    fn a_page_a_hundred_thousand_deep_is_its_text() {
        let deep = format!("<p>top</p>{}bottom{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let text = markdown(&deep);
        assert!(text.contains("top") && text.contains("bottom"), "{}", text.len());
        let inline = format!("{}x", "<b><i>".repeat(50_000));
        assert!(markdown(&inline).contains('x'));
        let parsed = format!("<p>top</p>{}bottom{}", "<div>".repeat(900), "</div>".repeat(900));
        assert!(markdown(&parsed).contains("bottom"), "deeper than the converter may go, and still parsed");
        let loose = "<p>a<br><img src=x><ul><li>b</ul><div>c</div>".repeat(2_000);
        assert!(!nests_past(&loose, PARSED) && nests_past(&deep, PARSED));
    }

    #[test]
    fn odd_pages_do_no_harm() {
        for html in
            ["", "\0", "<", "<!--", "plain", "<table><td><table>", "<a href='http://[::1'>x</a>", "</html></body>"]
        {
            let _ = markdown(html);
        }
        assert_eq!(markdown("plain &lt;b&gt;"), "plain \\<b>");
    }
}
